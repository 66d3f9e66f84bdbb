/* Counts of functions that torusd does not serve. */
#pragma once

#include "client/mpi/library/abi.h"

/* The program frees a request, which may be persistent. */
void unserved_freed(MPI_Request request);
