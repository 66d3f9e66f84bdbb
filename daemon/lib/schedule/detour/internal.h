/* What the files of this folder share: the cheapest paths (paths.c), routes of exchanges (exchange_routes.c), lower
 * bounds (cuts.c), trees (trees.c). */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

/* --- the cheapest paths --- */

/* The cheapest paths from one node to all others over the channels of a damaged torus that are
 * up. Each channel has a cost. All numbers are integers: where several paths are equally cheap, every
 * node chooses the same one. */

#define PATHS_MOST_COST (UINT64_C(1) << 50) /* the highest cost of a channel */

struct paths {
    uint32_t nodes;
    unsigned ports;
    size_t channels;     /* including channels that do not exist */
    uint32_t *neighbour; /* by channel, node * ports + port; TORUS_NO_NODE: no link, or out of
                          * order */
    uint64_t *cost;      /* by channel; filled by the caller */
    /* Results of the last paths_find(), by node: */
    uint64_t *distance; /* cost of its path; UINT64_MAX: not reached */
    uint32_t *before;   /* the node before it on its path; TORUS_NO_NODE at the source */
    uint8_t *via;       /* the port through which the path leaves that node */
    uint32_t *order;    /* the nodes that were reached, nearest first */
    uint32_t reached;
    struct paths_entry *heap;
    uint32_t heaped;
};

/* The index of the channel that leaves a node by a port. */
static inline size_t paths_channel(const struct paths *w, uint32_t node, unsigned port)
{
    return (size_t)node * w->ports + port;
}

/* Fills *w; the caller sets w->cost before paths_find(). Returns 0 with *w, which the caller frees
 * with paths_free(), or -1 with *e (no memory) and nothing to free. */
int paths_init(struct paths *w, const struct damage *d, struct error *e);
/* Frees what *w holds, and empties *w. */
void paths_free(struct paths *w);
/* Finds the cheapest paths from `source`. Among equally cheap paths, prefers those by the ports from
 * `turn` on, cyclically. */
void paths_find(struct paths *w, uint32_t source, unsigned turn);
/* Writes the ports of the path to a node that was reached. Returns how many: at most nodes - 1. */
uint32_t paths_trace(const struct paths *w, uint32_t destination, uint8_t *port);
/* The most hops of a shortest path between two nodes that can reach each other. Overwrites the
 * costs. */
uint32_t paths_diameter(struct paths *w);

/* --- routes of exchanges --- */

/* Routes for all segments of all blocks on a damaged torus. The search keeps the load of the busiest channel as low as
 * it can: the time that its segments take at its rate. It begins with the routes of `stream`, which are the best on a
 * whole torus; a segment whose route is broken takes the cheapest path. Then each source in turn finds its cheapest
 * paths, where a channel costs more the closer its load is to the largest one, and moves the segments for which that
 * saves something, until nothing is saved any more.
 *
 * The largest load comes within a few per cent of the optimum, a multi-commodity flow
 * (tests/bench/damaged.py compares the two). All numbers are integers, so that every node finds the
 * same routes for the same damage. */
struct balance {
    uint32_t nodes;
    uint32_t segments; /* segments of a block */
    uint32_t longest;  /* hops of the longest route */
    double busiest;    /* load of the busiest channel: its segments, divided by its rate */
    uint32_t stride;
    uint16_t *hops; /* by segment of a block: hops of its route; 0 if there is no such block */
    uint8_t *port;  /* ports of the routes; that of segment i begins at i * stride */
};

/* Fills *b. Returns 0 with *b, which the caller frees with balance_free(); or -1 with *e and
 * nothing to free: the torus is in parts (ERROR_LINK) or too large (ERROR_REFUSED), no memory. */
int balance_find(struct balance *b, const struct damage *d, struct error *e);
/* Frees what *b holds, and empties *b. */
void balance_free(struct balance *b);

/* The index of a segment in the arrays. */
static inline size_t balance_index(const struct balance *b, uint32_t source, uint32_t destination,
                                   uint32_t segment)
{
    return ((size_t)source * b->nodes + destination) * b->segments + segment;
}

/* The ports of the route of a segment. */
static inline const uint8_t *balance_ports(const struct balance *b, size_t index)
{
    return b->port + index * b->stride;
}

/* A lower bound on the load of the busiest channel in a complete exchange on a damaged torus: all
 * blocks from one part of the nodes to the rest cross the channels between them, at their rates. */

/* Returns the best bound that the search finds, in blocks. It tries boxes (a range of coordinates
 * in each dimension) as one part, and then moves single nodes to the other part as long as that
 * raises the bound. It also tries the hops of all shortest paths, divided by the rates of all channels.
 * If channels have different rates, it also looks for other lengths than one hop: whatever the lengths of
 * the channels are, the sum of all distances, divided by the sum of all lengths times rates, is a bound (by
 * the duality of linear programs), and the best lengths give the optimum.
 * The result is nearly always the optimum. It is 0 without memory, and with fewer than two nodes.
 * The torus must not be in parts. */
double cuts_bound(const struct damage *d);

/* Spanning trees of one root that share no channel: arborescences, as many as there can be.
 *
 * By a theorem of Edmonds (Edge-Disjoint Branchings, in: Combinatorial Algorithms, 1973, p. 91)
 * there are k such trees exactly if k units flow from the root to every other node, when each
 * channel carries one unit. The number is that of the least cut, by the theorem of Ford and
 * Fulkerson. Links have two channels, so that the least cut is the same for every root.
 *
 * The trees are made one after another, as in Lovász's proof (On Two Minimum Minimax Theorems in
 * Graph Theory, 1976). A tree takes a channel to a new node if the channels that are left still
 * carry one unit for each tree that is missing. Only the flow to that node has to be checked, since
 * every cut that the channel crosses has the node on its far side. A channel that was refused once
 * stays refused for this tree: the cut that forbids it stays full. So a tree looks at each channel
 * once. It looks at the channels near the root first, which keeps it shallow.
 *
 * If channels have different rates, a block has more segments than a cut has channels, and each segment has a tree:
 * several trees may use a channel, as many as its rate allows. The number of segments is the smallest one for which the
 * trees of every root take at most 1/PACKING_LOSS more time than its least cut, which then is that of the rates and
 * differs between roots; twice that, and so on, if PACKING_TREES_MOST are too few. Equal trees follow each other: a
 * tree is taken as often as the theorem still holds for what is left.
 *
 * All numbers are integers, and every choice follows the order of nodes and ports, so that every
 * node of a network finds the same trees. */

#define PACKING_NODES_MOST 64u /* a set of nodes is a word */
#define PACKING_TREES_MOST 64u /* with different rates */
#define PACKING_LOSS 20u

/* Channels between nodes, with what they can carry. */
struct network {
    /* By node: what goes to each other node, and the nodes to which, and from which, anything goes. */
    uint32_t channels[PACKING_NODES_MOST][PACKING_NODES_MOST];
    uint64_t out[PACKING_NODES_MOST], in[PACKING_NODES_MOST];
};

struct packing {
    uint32_t nodes;   /* those that are out of order, too */
    uint64_t present; /* nodes that are in order */
    uint32_t trees;   /* of every root; 0 with fewer than two nodes */
    double bound;     /* blocks of an allgather that cross the busiest channel of some cut */
    struct network
        all;       /* the channels that are in order; a channel of the full rate carries `unit` */
    uint32_t unit; /* 1, or DAMAGE_FULL_RATE with different rates */
    uint32_t cut[PACKING_NODES_MOST]; /* by root: the least cut */
    uint32_t slack;                   /* how many times 1/PACKING_LOSS the trees may take longer */
};

/* Several trees of each node that share no channel, on a damaged network: the routes of allgathers and
 * broadcasts whose blocks are split, one part for each tree. (With different rates they share channels as
 * far as the rates allow.) A channel carries a part of
 * a block in a broadcast, and at most N - 1 parts, one from each source, in an allgather of N nodes.
 * If the least cut is around a single node, as on nearly all networks, this is the lower bound of
 * both. */

struct disjoint_trees {
    uint32_t nodes;
    uint32_t
        trees; /* of each node: the least cut, or more with different rates; 0 if the network is too large */
    uint32_t longest; /* hops of the longest route */
    double bound;     /* lower bound of an allgather, in blocks: the busiest channel of a cut */
    double least_cut; /* of any root, in channels of the full rate; 0 if the network is too large */
    uint8_t *towards; /* by (source * trees + tree) * nodes + node: as in struct spread. NULL with
                       * fewer than two trees, unless rates differ: then the one tree avoids slow channels */
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
 * of its link, times LINK_LOAD_ONE, divided by the channel's rate: the load of an allreduce, which goes up and down
 * the trees. `towards` has `trees` trees of all nodes of the torus, one behind the other. Returns 0, or -1 with *e
 * (no memory). */
#define LINK_LOAD_ONE UINT64_C(1024)
int trees_on_a_link(uint64_t *most, const struct damage *d, const uint8_t *towards, size_t trees,
                    struct error *e);

/* Trees over which each node's block spreads on a damaged torus: the routes of an allgather. A tree
 * reaches every node by the fewest hops; of several such paths it takes the channel that the trees
 * before it have used least. All numbers are integers, so that every node finds the same trees for
 * the same damage. */

struct spread {
    uint32_t nodes;
    uint32_t longest; /* hops of the longest route */
    uint8_t *towards; /* by source * nodes + node: the node's port towards the source; TREE_NONE
                       * at the source and where there is no path */
};

/* Fills *s. Returns 0 with *s, which the caller frees with spread_free(), or -1 with *e (no memory)
 * and nothing to free. */
int spread_find(struct spread *s, const struct damage *d, struct error *e);
/* Frees what *s holds, and empties *s. */
void spread_free(struct spread *s);

/* Writes the route of a block along a tree, as route() of algorithm.h does; 0 legs if there is none.
 * `towards`, by node: its port towards the source; TREE_NONE as in struct spread. */
uint32_t spread_route_along(const uint8_t *towards, const struct torus *t, uint32_t source,
                            uint32_t destination, struct leg *legs);
/* As spread_route_along(), along the source's tree. */
uint32_t spread_route(const struct spread *s, const struct torus *t, uint32_t source,
                      uint32_t destination, struct leg *legs);
