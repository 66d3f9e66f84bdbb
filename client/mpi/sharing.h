/* Which communicator uses the torus, under MPI_THREAD_MULTIPLE. Calls on two communicators come in any order then,
 * which may differ between nodes; the calls of a part have one order. So a part belongs to the communicator that all
 * its ranks find it free for. */
#ifndef TORUSD_MPI_SHARING_H
#define TORUSD_MPI_SHARING_H

#include <stdbool.h>

#include "client/mpi/operations.h"

struct communicator;

/* What a communicator has of its part. */
struct share {
    bool asked;
    bool has_claimed; /* here; if all ranks have, it is */
    bool owns;
};

/* As communicator_enter(), of one that can be served. */
enum reason sharing_enter(struct communicator *c);

/* It is freed. */
void sharing_forget(struct communicator *c);

#endif
