/* The statistics that TORUS_MPI=stats prints at the end. */
#ifndef TORUSD_MPI_STATISTICS_H
#define TORUSD_MPI_STATISTICS_H

#include <stdint.h>

#include "client/mpi/library/operations.h"
#include "client/mpi/library/unserved_list.h"

uint64_t statistics_now(void); /* on a clock, in nanoseconds */

/* Counts a call of this operation; the torus has carried it out if the reason is REASON_TAKEN. */
void statistics_add(enum operation operation, enum reason reason, uint64_t bytes,
                    uint64_t nanoseconds);

/* Counts a call of an operation that torusd does not serve, in which this rank passes on `bytes`
 * (0: not known). */
void statistics_add_unserved(enum unserved operation, uint64_t bytes);

/* Counts a start of a persistent operation. */
void statistics_add_start(enum unserved operation, uint64_t bytes);

/* Prints one line on standard error. */
void statistics_print(void);

#endif
