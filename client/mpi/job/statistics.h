/* What TORUS_MPI=stats prints at the end. */
#ifndef TORUSD_MPI_STATISTICS_H
#define TORUSD_MPI_STATISTICS_H

#include <stdint.h>

#include "client/mpi/library/operations.h"
#include "client/mpi/library/unserved_list.h"

uint64_t statistics_now(void); /* nanoseconds */

/* A call of this operation, which the torus has carried out if the reason is REASON_TAKEN. */
void statistics_add(enum operation operation, enum reason reason, uint64_t bytes,
                    uint64_t nanoseconds);

/* A call of an operation that torusd does not serve, of which this rank passes on so many bytes (0: not known). */
void statistics_add_unserved(enum unserved operation, uint64_t bytes);

/* A persistent one has been started. */
void statistics_add_start(enum unserved operation, uint64_t bytes);

/* One line on standard error. */
void statistics_print(void);

#endif
