/* Several trees of each node that share no channel, on a damaged network: the routes of allgathers and
 * broadcasts whose blocks are split, one part for each tree (packing.h). A channel carries a part of
 * a block in a broadcast, and at most N - 1 parts, one from each source, in an allgather of N nodes.
 * If the least cut is around a single node, as on nearly all networks, this is the lower bound of
 * both. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

struct disjoint_trees {
    uint32_t nodes;
    uint32_t trees;   /* of each node: the least cut; 0 if the network is too large */
    uint32_t longest; /* hops of the longest route */
    double bound;     /* lower bound of an allgather, in blocks: the busiest channel of a cut */
    uint8_t *towards; /* by (source * trees + tree) * nodes + node: as in struct spread. NULL with
                       * fewer than two trees */
};

/* Fills *f. Networks of more than PACKING_NODES_MOST nodes have no trees, and the bound is that of
 * the node with the fewest links. The network must not be in parts. Returns 0 with *f, which the
 * caller frees with disjoint_trees_free(), or -1 with *e (no memory) and nothing to free. */
int disjoint_trees_find(struct disjoint_trees *f, const struct damage *d, struct error *e);
/* Frees what *f holds, and empties *f. */
void disjoint_trees_free(struct disjoint_trees *f);

/* The tree of a source: by node, its port towards the source. */
static inline const uint8_t *disjoint_trees_of(const struct disjoint_trees *f, uint32_t source,
                                               uint32_t tree)
{
    return f->towards + ((size_t)source * f->trees + tree) * f->nodes;
}

/* Sets *most to the trees that use a channel or, counted with them, the channel in the other direction
 * of its link: the load of an allreduce, which goes up and down the trees. `towards` has `trees` trees of
 * all nodes of the torus, one behind the other. Returns 0, or -1 with *e (no memory). */
int trees_on_a_link(uint32_t *most, const struct torus *t, const uint8_t *towards, size_t trees,
                    struct error *e);
