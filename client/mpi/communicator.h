/* Communicators, and where their ranks are on the torus. */
#ifndef TORUSD_MPI_COMMUNICATOR_H
#define TORUSD_MPI_COMMUNICATOR_H

#include <torus/group.h>

#include "client/mpi/abi.h"
#include "client/mpi/operations.h"
#include "client/mpi/sharing.h"

/* What is known of a communicator since its first collective operation, or since it has been duplicated. Nodes are
 * counted as the members of their group are, the ranks on a node from its leader on; rank `local` on node `n` has
 * place n * locals + local. Blocks travel in the order of places. */
struct communicator {
    MPI_Comm handle;
    enum reason reason; /* REASON_TAKEN, or why none of its calls is ever taken: then it has no more
                          * than the next two */
    uint32_t size, rank; /* of the communicator */
    uint32_t dimensions; /* of the part of the torus that its nodes are */
    uint32_t nodes, locals;
    uint32_t node, local;        /* where this process is */
    bool in_order;               /* every rank is its own place */
    struct placement *placement; /* which has the next two */
    const uint32_t *rank_at;     /* [place] */
    const uint32_t *place_of;    /* [rank] */
    struct torus_group *group;   /* NULL: this process does not lead */
    size_t *numbers;             /* room for 4 * size of them */
    uint32_t calls;              /* that have been made on it, if it can be served */
    unsigned said;               /* the reason that has been printed last, and 1; 0: none */
    struct share share;
};

static inline bool communicator_leads(const struct communicator *c)
{
    return c->local == 0;
}

/* Of this communicator. NULL: it is invalid, or there is no memory, which has failed the group. */
struct communicator *communicator_of(MPI_Comm comm);

/* Whether this is the first call on a communicator that the program has made. */
bool communicator_is_new(const struct communicator *c);

/* A call on it begins: REASON_TAKEN if it may use the torus, until communicator_leave(). All ranks of the
 * communicator make this call at the same point, and get the same. */
enum reason communicator_enter(struct communicator *c);
void communicator_leave(struct communicator *c);

#endif
