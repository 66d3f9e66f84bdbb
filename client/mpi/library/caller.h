/* Tells whether the program or the MPI library itself calls a function of MPI. The library's
 * implementation of MPI_File_X (ROMIO) calls collective operations by their public names, which
 * this preload defines. */
#ifndef TORUSD_MPI_CALLER_H
#define TORUSD_MPI_CALLER_H

#include <stdbool.h>

/* Whether this return address lies in the MPI library or in a component of it. The bindings for other languages
 * are libraries of their own, and count as the program. Thread-safe; takes a few nanoseconds. */
bool caller_is_mpi(const void *return_address);

/* For use in the function that MPI or the program has called. */
#define CALLED_BY_MPI() caller_is_mpi(__builtin_return_address(0))

#endif
