/* Sets aside error handlers of the program's communicators while the preload uses these
 * communicators: an error that the preload can handle must not reach the program's handler,
 * which ends the program by default. */
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

/* Lets errors be returned on MPI_COMM_WORLD and MPI_COMM_SELF, on which MPI reports errors of
 * groups and types, and on `comm` unless that is MPI_COMM_NULL, until errhandlers_put_back().
 * Other threads wait in this function meanwhile, so nothing that waits for another process may
 * be done before that call, unless the program has not returned from MPI_Init yet. */
void errhandlers_set_aside(struct errhandlers *h, MPI_Comm comm);

/* Puts the handlers back. A handler that another thread of the program has set in between stays. */
void errhandlers_put_back(struct errhandlers *h);

#endif
