/* Errors in the form of MPI: codes for the communicator's error handler. */
#ifndef TORUSD_MPI_FAILURE_H
#define TORUSD_MPI_FAILURE_H

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* An error code of an error class of our own, with the text of *error. */
int failure_of_torus(const struct torus_error *error);

#endif
