/* Spanning trees of one root that share no channel: arborescences, as many as there can be.
 *
 * By a theorem of Edmonds (Edge-Disjoint Branchings, in: Combinatorial Algorithms, 1973, p. 91)
 * there are k such trees exactly if k units flow from the root to every other node, when each
 * channel carries one unit. The number is that of the least cut, by the theorem of Ford and
 * Fulkerson. Links have two channels, so that the least cut is the same for every root.
 *
 * The trees are made one after the other, as in Lovász's proof (On Two Minimum Minimax Theorems in
 * Graph Theory, 1976). A tree takes a channel to a new node if the channels that are left still
 * carry one unit for each tree that is missing. Only the flow to that node has to be checked, since
 * every cut that the channel crosses has the node on its far side. A channel that was refused once
 * stays refused for this tree: the cut that forbids it stays full. So a tree looks at each channel
 * once. It looks at the channels near the root first, which keeps it shallow.
 *
 * All numbers are integers, and every choice follows the order of nodes and ports, so that every
 * node of a network finds the same trees. */
#pragma once

#include "daemon/lib/schedule/damage.h"

#define PACKING_NODES_MOST 64u /* a set of nodes is a word */

struct packing {
    uint32_t nodes;   /* those that are out of order, too */
    uint32_t present; /* nodes that are in order */
    uint32_t trees;   /* of every root: the least cut; 0 with fewer than two nodes */
    double bound;     /* blocks of an allgather that cross the busiest channel of some cut */
    /* The channels that are in order: by node, how many lead to each other node, and the nodes to
     * which, and from which, at least one leads. */
    uint8_t channels[PACKING_NODES_MOST][PACKING_NODES_MOST];
    uint64_t out[PACKING_NODES_MOST], in[PACKING_NODES_MOST];
};

/* Fills *p with the channels of a damaged network of at most PACKING_NODES_MOST nodes, which must
 * not be in parts, and finds how many trees there are. */
void packing_init(struct packing *p, const struct damage *d);

/* Finds the trees of a root that is in order: `towards`, by tree * nodes + node, is the node's port
 * towards the root, TREE_NONE at the root and at nodes that are out of order. Returns the hops of the
 * longest way to the root. */
uint32_t packing_find(const struct packing *p, const struct damage *d, uint32_t root,
                      uint8_t *towards);
