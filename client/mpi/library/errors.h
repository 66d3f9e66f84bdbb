/* Error handlers and error codes of MPI. */
#pragma once

#include <torus/group.h>

#include "client/mpi/library/abi.h"

/* Replaces the error handlers of the program's communicators while the preload uses these communicators: an error
 * that the preload can handle must not reach the program's handler, which ends the program by default. */

#define ERRHANDLERS_MOST 3u

struct errhandlers {
    unsigned count;
    struct errhandler {
        MPI_Comm comm;
        MPI_Errhandler kept;
    } each[ERRHANDLERS_MOST];
};

/* Makes MPI return errors until errhandlers_restore(): on MPI_COMM_WORLD and MPI_COMM_SELF, where MPI reports errors
 * of groups and types, and on `comm`, unless that is MPI_COMM_NULL. Other threads wait in this function meanwhile. So
 * do not wait for another process before errhandlers_restore(), except in MPI_Init. */
void errhandlers_replace(struct errhandlers *h, MPI_Comm comm);
/* Restores the handlers, except where another thread of the program has set a new one meanwhile. */
void errhandlers_restore(struct errhandlers *h);

/* Converts errors of libtorus to error codes of MPI. */

/* Returns an error code with the text of *error, in an error class of this preload. */
int failure_of_torus(const struct torus_error *error);
