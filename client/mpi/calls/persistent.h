/* Remembers requests of persistent collective operations, so that their starts can be counted:
 * MPI_Start and MPI_Startall also start requests of MPI_Send_init and similar functions. */
#ifndef TORUSD_MPI_PERSISTENT_H
#define TORUSD_MPI_PERSISTENT_H

#include "client/mpi/library/unserved_list.h"

/* The program has made a request of this operation, which passes on `bytes` at each start. */
void persistent_made(MPI_Request request, enum unserved operation, uint64_t bytes);

#endif
