/* Converts errors of libtorus to error codes of MPI. */
#ifndef TORUSD_MPI_FAILURE_H
#define TORUSD_MPI_FAILURE_H

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* Returns an error code with the text of *error, in an error class of this preload. */
int failure_of_torus(const struct torus_error *error);

#endif
