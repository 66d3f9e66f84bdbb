/* The record of a communicator: the places of its ranks on the torus, and its lane. */
#ifndef TORUSD_MPI_COMMUNICATOR_RECORD_H
#define TORUSD_MPI_COMMUNICATOR_RECORD_H

#include <torus/group.h>

#include "client/mpi/communicators/claims.h"
#include "client/mpi/library/abi.h"
#include "client/mpi/library/operations.h"

/* A communicator's state in the sharing of lanes (sharing.h). */
struct share {
    bool owns; /* the communicator owns a lane: */
    unsigned lane;
    bool under_way;                /* a call that uses the lane is under way */
    uint32_t ask_at, ask_distance; /* when it asks next, and the distance between questions; in
                                    * calls */
    struct looks looks;
};

/* A communicator. The record is made by its first collective operation, or when it is duplicated. Nodes are numbered like the members of their group, and the ranks on a node from
 * its leader on; rank `local` on node `n` has place n * locals + local. Blocks travel in the
 * order of places. */
struct communicator {
    MPI_Comm handle;
    enum reason reason; /* REASON_TAKEN, or why none of its calls is ever taken: then it has no more
                          * than the next two */
    uint32_t size, rank; /* of the communicator */
    uint32_t dimensions; /* of the part of the torus that its nodes form */
    uint32_t nodes, locals;
    uint32_t node, local;        /* where this process is */
    bool in_order;               /* every rank equals its place */
    struct placement *placement; /* owns the next two tables */
    const uint32_t *rank_at;     /* [place] */
    const uint32_t *place_of;    /* [rank] */
    struct torus_group *group;   /* NULL: this process does not lead */
    size_t *numbers;             /* room for 4 * size numbers */
    uint32_t calls;              /* calls that have been made on it, if it can be served */
    unsigned said;               /* the reason that was printed last, plus 1; 0: none */
    struct share share;
};

static inline bool communicator_leads(const struct communicator *c)
{
    return c->local == 0;
}

#endif
