/* A node's part of the trees along which vectors are combined, which are the routes of an allgather
 * in reverse.
 *
 * In an allgather the block of each node, here its owner, spreads over a tree that reaches all
 * others. In reverse, every node has a contribution to that block. It combines its own with what
 * its children have sent, and passes the result to its parent, until the owner has all
 * contributions: MPI_Reduce_scatter with one block for each node, MPI_Reduce with one owner. Each
 * tree has each channel at most once, and the channels carry what they carry in the allgather, in
 * the other direction; with one owner, what they carry in a broadcast (the bound is that of
 * torus_bound_reduce()).
 *
 * Both ends of a channel know the same order of the pieces that cross it: first those that go up
 * (to an owner), by (owner, segment), then those that come down from the owners, in the same
 * order. A piece is named by its place in that order. */
#ifndef TORUSD_SCHEDULE_ROUTES_REDUCTION_H
#define TORUSD_SCHEDULE_ROUTES_REDUCTION_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/damage.h"

#define REDUCTION_NO_PORT UINT8_MAX
#define REDUCTION_LEAST_CHUNK 4096u /* bytes; a piece that is shorter travels whole */

/* A child from which contributions to a tree arrive. */
struct reduction_child {
    uint32_t tree;  /* index of the tree */
    uint32_t place; /* place among all pieces that arrive by the port */
    uint8_t port;
};

/* One segment of one owner's block. */
struct reduction_tree {
    uint32_t owner;
    uint32_t place; /* place of the piece for the parent, among all that leave by that port */
    uint32_t first; /* index of its first child; its children are consecutive, by rising port */
    uint16_t segment;
    uint16_t distance; /* hops from here to the owner along the tree; 0 at the owner */
    uint8_t parent; /* port towards the owner, REDUCTION_NO_PORT at the owner, and where the owner
                        * or this node is out of order: then its block has to be empty */
    uint8_t children;
};

struct reduction_trees {
    uint32_t rank;
    bool single;            /* one owner only */
    uint32_t segments;      /* of each block */
    uint32_t most_distance; /* in any tree, of any node: the same at all nodes */
    uint32_t count, edges;  /* trees, and children of all of them */
    uint32_t most_children; /* with one owner: an upper bound on `edges` of any node, the same at
                             * all nodes */
    struct reduction_tree *tree; /* by (owner, segment) */
    struct reduction_child *child;
    /* By port, of what goes up: how many pieces come in and leave, and what by its place: the
     * index of the child, and of the tree. What comes down by a port is what leaves up by it, and
     * has the places behind what comes in, in the same order; and the other way round. */
    uint32_t arrivals[TORUS_MAX_PORTS], departures[TORUS_MAX_PORTS];
    uint32_t *arrival[TORUS_MAX_PORTS], *departure[TORUS_MAX_PORTS];
};

/* Fills *p for node `rank` with a tree for each segment of each node's block. The algorithm must
 * be for an allgather; it and the torus are not needed afterwards. Walks all routes of the
 * algorithm's classes. Returns 0 with *p, which the caller gives to reduction_free(); or -1 with
 * *e set and nothing to free: no such node, the algorithm refuses the torus, is not for an
 * allgather, or a block's routes are not a tree; no memory. */
int reduction_build(struct reduction_trees *p, const struct torus *t, const struct algorithm *a,
                    uint32_t rank, struct error *e);

/* Fills *p for one owner, `root`: one tree for each of the algorithm's segments, made of its
 * routes from the root in reverse. Otherwise as reduction_build(). */
int reduction_build_rooted(struct reduction_trees *p, const struct torus *t,
                           const struct algorithm *a, uint32_t root, uint32_t rank,
                           struct error *e);

/* Fills *p for one owner, `root`, with one tree of least depth (tree.h). Otherwise as
 * reduction_build(). */
int reduction_build_single(struct reduction_trees *p, const struct torus *t, uint32_t root,
                           uint32_t rank, struct error *e);
/* As reduction_build_single(), over the links that are in order; the root must reach all nodes
 * of these links. */
int reduction_build_around(struct reduction_trees *p, const struct damage *d, uint32_t root,
                           uint32_t rank, struct error *e);
void reduction_free(struct reduction_trees *p);

/* A good root: a node whose largest distance to another node is as small as possible. */
uint32_t reduction_root(const struct torus *t);

/* The place on its channel of the piece that comes down to this node, from the parent of a tree. */
static inline uint32_t reduction_down_in(const struct reduction_trees *p,
                                         const struct reduction_tree *tree)
{
    return p->arrivals[tree->parent] + tree->place;
}

/* The place on its channel of the piece that goes down from here to a child. */
static inline uint32_t reduction_down_out(const struct reduction_trees *p,
                                          const struct reduction_child *child)
{
    return p->departures[child->port] + child->place;
}

#endif
