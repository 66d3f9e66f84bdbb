/* What TORUS_MPI=stats prints at the end. */
#ifndef TORUSD_MPI_STATISTICS_H
#define TORUSD_MPI_STATISTICS_H

#include <stdint.h>

#include "client/mpi/operations.h"

uint64_t statistics_now(void); /* nanoseconds */

/* A call of this operation, which the torus has carried out if the reason is REASON_TAKEN. */
void statistics_add(enum operation operation, enum reason reason, uint64_t bytes,
                    uint64_t nanoseconds);

/* One line on standard error. */
void statistics_print(void);

#endif
