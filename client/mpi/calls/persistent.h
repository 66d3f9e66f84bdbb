/* Requests of persistent collective operations, so that their starts can be counted: MPI_Start and MPI_Startall,
 * which start those of MPI_Send_init and the like as well. */
#ifndef TORUSD_MPI_PERSISTENT_H
#define TORUSD_MPI_PERSISTENT_H

#include "client/mpi/library/unserved_list.h"

/* The program has made such a request, which passes on so many bytes each time. */
void persistent_made(MPI_Request request, enum unserved operation, uint64_t bytes);

#endif
