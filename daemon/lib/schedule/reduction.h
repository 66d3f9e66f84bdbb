/* A node's part of the trees along which vectors are combined. The trees are the routes of an
 * allgather in reverse.
 *
 * In an allgather the block of each node, here called its owner, spreads over a tree that reaches
 * all others. In reverse, every node has a contribution to that block. A node combines its own
 * contribution with what its children have sent, and passes the result to its parent, until the
 * owner has combined all: MPI_Reduce_scatter with one block for each node, MPI_Reduce with one
 * owner. A tree uses each channel at most once. The channels carry what they carry in the
 * allgather, in the other direction; with one owner, what they carry in a broadcast
 * (torus_bound_reduce() is the bound).
 *
 * Both ends of a channel know the same order of the pieces that cross it. Pieces that go up, to an
 * owner, come first, by (owner, segment), then pieces that come down from the owners, in the same
 * order. A piece is named by its place in that order. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

#define REDUCTION_NO_PORT UINT8_MAX
#define REDUCTION_LEAST_CHUNK 4096u /* bytes; a piece that is shorter travels whole */

/* A child from which contributions to a tree arrive. */
struct reduction_child {
    uint32_t tree;  /* index in reduction_trees.tree */
    uint32_t place; /* place of the child's piece among all that arrive by the port */
    uint8_t port;
};

/* The tree of one segment of one owner's block, at this node. */
struct reduction_tree {
    uint32_t owner;
    uint32_t place; /* place of the piece for the parent among all that leave by that port */
    uint32_t first; /* index of its first child; its children are consecutive, by rising port */
    uint16_t segment;
    uint16_t distance; /* hops from here to the owner along the tree; 0 at the owner */
    uint8_t parent;    /* port towards the owner. REDUCTION_NO_PORT at the owner, and if the
                        * owner or this node is down: then the block must be empty */
    uint8_t children;
};

struct reduction_trees {
    uint32_t rank;
    bool single;            /* there is one owner only, the root */
    uint32_t segments;      /* of each block */
    uint32_t most_distance; /* largest distance in any tree of any node; the same at all nodes */
    uint32_t count, edges;  /* trees; children of all trees together */
    uint32_t most_children; /* with one owner: at least the `edges` of any node; the same at all
                             * nodes */
    struct reduction_tree *tree; /* by (owner, segment) */
    struct reduction_child *child;
    /* By port, of the pieces that go up: how many arrive and leave; and by their place, the index
     * in `child` of an arrival, and in `tree` of a departure. Pieces that come down by a port
     * belong to the trees whose pieces leave up by that port; they have the places after the
     * arrivals, in the same order. Pieces that go down by a port likewise have the places after the
     * departures. */
    uint32_t arrivals[TORUS_MAX_PORTS], departures[TORUS_MAX_PORTS];
    uint32_t *arrival[TORUS_MAX_PORTS], *departure[TORUS_MAX_PORTS];
};

/* Fills *p for node `rank` with a tree for each segment of each node's block. Follows the routes
 * from one source of each class; the algorithm and the torus are not needed afterwards. Returns 0
 * with *p, which the caller gives to reduction_free(); or -1 with *e and nothing to free: no such
 * node, the algorithm is not for an allgather, or the routes of a block are not a tree
 * (ERROR_USAGE); it refuses the torus; no memory. */
int reduction_build(struct reduction_trees *p, const struct torus *t, const struct algorithm *a,
                    uint32_t rank, struct error *e);

/* As reduction_build(), for one owner, `root`: a tree for each of the algorithm's segments, made of
 * its routes from the root. */
int reduction_build_rooted(struct reduction_trees *p, const struct torus *t,
                           const struct algorithm *a, uint32_t root, uint32_t rank,
                           struct error *e);

/* As reduction_build(), for one owner, `root`, with a single tree of the least depth (tree.h) and
 * one segment. */
int reduction_build_single(struct reduction_trees *p, const struct torus *t, uint32_t root,
                           uint32_t rank, struct error *e);
/* As reduction_build_single(), over the links that are up. The root must reach all nodes that
 * these links connect. */
int reduction_build_around(struct reduction_trees *p, const struct damage *d, uint32_t root,
                           uint32_t rank, struct error *e);
/* Frees what *p holds, and empties *p. An empty *p is allowed. */
void reduction_free(struct reduction_trees *p);

/* A good root: one of the nodes whose largest distance to any other node is the smallest. */
uint32_t reduction_root(const struct torus *t);

/* The place on its channel of the piece that goes down from this node to a child. */
static inline uint32_t reduction_down_out(const struct reduction_trees *p,
                                          const struct reduction_child *child)
{
    return p->departures[child->port] + child->place;
}
