/* Remembers the requests of persistent collective operations, to count their starts. MPI_Start and MPI_Startall also
 * start other requests, such as those of MPI_Send_init. */
#pragma once

#include "client/mpi/library/unserved_list.h"

/* The program has made a request of this operation. Each start contributes `bytes`. */
void persistent_made(MPI_Request request, enum unserved operation, uint64_t bytes);
