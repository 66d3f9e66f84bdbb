/* What this process knows of the faster way for calls, from all communicators; and the table of TORUS_MPI_TABLE, which
 * fixes the ways. */
#pragma once

#include "client/mpi/job/choice.h"
#include "client/mpi/library/operations.h"

/* Returns the entry for such calls on communicators of one form: with these dimensions, and one or several ranks on a
 * node. The job must be locked while it is read or written. */
struct choice_known *known_at(uint32_t dimensions, bool several, enum mpi_operation operation,
                              unsigned size_class);

/* Called by all processes of the job in MPI_Init, which agree whether there is a table; `path` is read at rank 0 only;
 * NULL: none. If the file exists, its ways are fixed (job.ways). Otherwise known_end() writes it. Returns 0, or -1 if
 * memory is short or MPI fails. */
int known_begin(const char *path);
/* Called by all processes of the job in MPI_Finalize. */
void known_end(void);
