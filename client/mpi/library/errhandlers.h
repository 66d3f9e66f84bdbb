/* Error handlers of communicators that are the program's, set aside while the preload uses them for itself: an
 * error that it can deal with must not reach the program's handler, which ends the program by default. */
#ifndef TORUSD_MPI_ERRHANDLERS_H
#define TORUSD_MPI_ERRHANDLERS_H

#include "client/mpi/library/abi.h"

#define ERRHANDLERS_MOST 3u

struct errhandlers {
    unsigned count;
    struct errhandler {
        MPI_Comm comm;
        MPI_Errhandler kept;
    } each[ERRHANDLERS_MOST];
};

/* Makes errors on MPI_COMM_WORLD and MPI_COMM_SELF, where MPI reports those of groups and types, be returned
 * until errhandlers_put_back(); on `comm` as well, unless that is MPI_COMM_NULL. Other threads wait in this
 * function meanwhile, so nothing that waits for another process may be done before they are put back, unless
 * the program has not returned from MPI_Init yet. */
void errhandlers_set_aside(struct errhandlers *h, MPI_Comm comm);

/* A handler that another thread of the program has set in between stays. */
void errhandlers_put_back(struct errhandlers *h);

#endif
