/* The statistics that TORUS_MPI=stats prints in MPI_Finalize. */
#pragma once

#include <stdint.h>

#include "client/mpi/library/abi.h"

#include "client/mpi/library/operations.h"

/* Returns nanoseconds on a monotonic clock. */
uint64_t statistics_now(void);

/* Count a call of this operation, which may be nonblocking. The torus has carried it out if the reason is REASON_SERVED.
 * statistics_add_time() adds more time to a call that was counted as served. */
void statistics_add(enum mpi_operation operation, bool is_nonblocking, enum reason reason,
                    uint64_t bytes, uint64_t nanoseconds);
void statistics_add_time(enum mpi_operation operation, bool is_nonblocking, uint64_t nanoseconds);

/* Counts a call of an operation that torusd does not serve, to which this rank contributes `bytes` (0: not known). */
void statistics_add_unserved(enum unserved operation, uint64_t bytes);

/* Counts a start of a persistent operation, to which this rank contributes `bytes`. */
void statistics_add_start(enum unserved operation, uint64_t bytes);

/* Adds up the statistics of all `ranks`, all of which make this call. Rank 0 prints them as one line on standard
 * error. */
void statistics_print(MPI_Comm comm, uint32_t rank, uint32_t ranks);
