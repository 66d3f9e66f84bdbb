/* Errors, as MPI has them: codes for the communicator's error handler. */
#ifndef TORUSD_MPI_FAILURE_H
#define TORUSD_MPI_FAILURE_H

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* An error code of a class of our own, whose text is that of the torus. */
int failure_of_torus(const struct torus_error *error);

#endif
