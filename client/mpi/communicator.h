/* Communicators, and where their ranks are on the torus. */
#ifndef TORUSD_MPI_COMMUNICATOR_H
#define TORUSD_MPI_COMMUNICATOR_H

#include <torus/group.h>

#include "client/mpi/abi.h"
#include "client/mpi/operations.h"

/* What is known of a communicator since its first collective operation. Nodes are counted as the
 * members of their group are, the ranks on a node from its leader on; rank `local` on node `n` has
 * place n * locals + local. Blocks travel in the order of places. */
struct communicator {
    MPI_Comm handle;
    enum reason reason;  /* REASON_TAKEN, or why none of its calls is taken; then all else is 0 */
    uint32_t dimensions; /* of the part of the torus that its nodes are */
    uint32_t nodes, locals;
    uint32_t size, rank;       /* of the communicator */
    uint32_t node, local;      /* where this process is */
    bool in_order;             /* every rank is its own place */
    uint32_t *rank_at;         /* [place] */
    uint32_t *place_of;        /* [rank] */
    int *on_node;              /* [local] the ranks on this node, as MPI_COMM_WORLD counts them */
    struct torus_group *group; /* NULL: this process does not lead */
    bool owns_part;            /* the only communicator on these nodes, under MPI_THREAD_MULTIPLE */
    size_t *numbers;           /* room for 4 * size of them */
};

static inline bool communicator_leads(const struct communicator *c)
{
    return c->local == 0;
}

/* Of this communicator; the first time, all its ranks call this. NULL: no memory, or `comm` is not a
 * communicator. */
struct communicator *communicator_of(MPI_Comm comm);

#endif
