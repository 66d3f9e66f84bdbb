/* Converts errors of libtorus to error codes of MPI. */
#pragma once

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* Returns an error code with the text of *error, in an error class of this preload. */
int failure_of_torus(const struct torus_error *error);
