/* Who calls a function of MPI: the program, or the MPI library itself. Its implementation of MPI_File_X (ROMIO)
 * calls collective operations by their public names, which are ours. */
#ifndef TORUSD_MPI_CALLER_H
#define TORUSD_MPI_CALLER_H

#include <stdbool.h>

/* Whether this return address lies in the MPI library or in a component of it. The bindings for other languages
 * are libraries of their own, and count as the program. Thread-safe; takes a few nanoseconds. */
bool caller_is_mpi(const void *return_address);

/* For the function that this is written in. */
#define CALLED_BY_MPI() caller_is_mpi(__builtin_return_address(0))

#endif
