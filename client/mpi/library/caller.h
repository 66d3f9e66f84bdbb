/* Finds out whether the program or the MPI library itself calls a function of MPI. The implementation of MPI_File_X
 * in the MPI library (ROMIO) calls collective operations by their public names, which this preload defines. */
#pragma once

#include <stdbool.h>

/* Returns whether this return address is in the MPI library or in a component of it. Bindings for other languages are
 * separate libraries, and count as the program. Thread-safe; takes a few nanoseconds. */
bool caller_is_mpi(const void *return_address);

/* For use in the function that MPI or the program has called. */
#define CALLED_BY_MPI() caller_is_mpi(__builtin_return_address(0))
