/* The record of a communicator: the places of its ranks on the torus, and its lane. */
#pragma once

#include <torus/group.h>

#include "client/mpi/communicators/claims.h"
#include "client/mpi/library/abi.h"
#include "client/mpi/library/operations.h"

/* The lane of a communicator (sharing.h). */
struct share {
    bool owns; /* the communicator owns lane `lane` */
    unsigned lane;
    bool under_way; /* a call that uses the lane is under way */
    /* The number of the call in which the communicator asks next, and the number of calls between questions. */
    uint32_t ask_at, ask_distance;
    struct lanes_seen seen;
};

/* A communicator. Its first collective operation makes the record. Nodes are numbered like the
 * members of their group. The ranks on a node are numbered from its leader on: rank `local` on node `n` has place n *
 * locals + local. Blocks are sent in the order of places. */
struct communicator {
    MPI_Comm handle;
    /* REASON_SERVED, or why no call on this communicator is ever served; then only the next two fields are set. */
    enum reason reason;
    uint32_t size, rank;         /* of the communicator */
    uint32_t dimensions;         /* dimensions of the part of the torus that its nodes form */
    uint32_t nodes, locals;      /* number of nodes, and of ranks on each node */
    uint32_t node, local;        /* the node and local rank of this process */
    bool in_order;               /* every rank equals its place */
    struct placement *placement; /* owns the next two tables */
    const uint32_t *rank_at;     /* [place] */
    const uint32_t *place_of;    /* [rank] */
    struct torus_group *group;   /* NULL: this process is not a leader */
    size_t *numbers;             /* room for 4 * size numbers */
    uint32_t calls;              /* number of calls on it, if it can be served */
    unsigned printed;            /* the reason printed last, plus 1; 0: none */
    struct share share;
};

static inline bool communicator_leads(const struct communicator *c)
{
    return c->local == 0;
}
