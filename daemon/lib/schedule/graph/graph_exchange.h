/* A complete exchange within one graph (graph.h) by single hops, in which every pair of nodes has one
 * block. It is the exchange of a single dimension from which A1, A2 and A3 (algorithms/a1_a2.c,
 * a3.c) make those of products.
 *
 * All paths are shortest paths. With one port, a node sends at most one block and receives at most
 * one block in a step. With all ports, each channel carries at most one block in a step.
 *
 * First every pair gets a path. The paths of a source form a tree of fewest hops. A node joins the
 * tree by the path whose nodes (with all ports: whose channels) the other paths use least. Then the
 * steps are filled, one after another. With one port, a step is a matching of senders with
 * receivers, found by augmenting paths; nodes with the most blocks left to send are matched first.
 * With all ports, every channel for which a block waits sends one. The block with the most hops left
 * leaves first. With all ports, all of this is repeated on small graphs with other choices among equal ones, and the
 * exchange with the fewest steps is kept.
 *
 * If the graph `moves`, all nodes do the same in each step, and the offset from source to
 * destination determines the path. With one port, the same holds in every graph for which
 * graph_group() finds a regular group of automorphisms: the path of a block is that of a block of
 * node 0, moved to its source. All nodes then send and receive in every step. The exchange takes as
 * many steps as the status of a node, the lower bound: section 4.1 of Dimakopoulos, Dimopoulos: A
 * Theory for Total Exchange in Multidimensional Interconnection Networks. On other graphs some
 * nodes relay more than others, and the exchange takes at least as many steps as the busiest node
 * has blocks to send. It takes no more on all graphs that tests/unit/test_graph.c tries: on trees
 * and stars, where paths leave no choice, it is optimal. star:5 takes 16 steps (the average status
 * is 6.4), tree:2^2 24 (13.7), Petersen's graph 15 (15), random graphs of 24 nodes with 4 links
 * about 1.1 times the average status.
 */
#pragma once

#include "daemon/lib/schedule/graph/graph.h"

/* The most hops of all blocks together for which an exchange is made: a tree of 127 nodes, or 230
 * nodes with 4 links each. */
#define GRAPH_EXCHANGE_HOPS_MOST (1u << 18)

enum graph_ports { GRAPH_ONE_PORT, GRAPH_ALL_PORTS };
#define GRAPH_PORTS (GRAPH_ALL_PORTS + 1u)

struct graph_hop {
    uint32_t step;
    uint8_t direction;
};

struct graph_exchange {
    const struct graph *graph;
    uint32_t steps;
    uint32_t *hops_before; /* by node, and for n: the hops of all blocks from lower nodes */
    uint32_t *first;       /* by block: where in `hop` its path begins */
    struct graph_hop *hop; /* of one block after another */
    struct graph_exchange *next;
};

/* Returns the exchange, or NULL if the graph has too many hops (GRAPH_EXCHANGE_HOPS_MOST), or there
 * is no memory. The first call makes the exchange, which is then kept until the process ends.
 * Thread-safe. */
const struct graph_exchange *graph_exchange(const struct graph *g, enum graph_ports ports);

/* Makes an exchange with all ports that is not kept; the caller gives it to graph_exchange_free(). `moves`: NULL, or
 * automorphisms as graph_group() has them, under which the hops of a block move with its ends. The search ends at `least`
 * steps. NULL: no memory. */
struct graph_exchange *graph_exchange_new(const struct graph *g, const uint16_t *moves,
                                          uint32_t least);
void graph_exchange_free(struct graph_exchange *x);

/* The hops of a block, graph_distance() many, in rising steps. */
static inline const struct graph_hop *graph_exchange_path(const struct graph_exchange *x,
                                                          uint32_t from, uint32_t to)
{
    uint32_t n = x->graph->nodes;

    if (x->graph->moves)
        return x->hop + x->first[(to + n - from) % n];
    return x->hop + x->first[(size_t)from * n + to];
}

/* The sum of a node's distances to all others. */
uint32_t graph_status(const struct graph *g, uint32_t node);

/* The sum of all distances. */
uint64_t graph_hops(const struct graph *g);

/* The most blocks that any node has to relay because all paths between their ends lead through it;
 * 0 if no node divides the graph. */
uint64_t graph_relayed_most(const struct graph *g);
