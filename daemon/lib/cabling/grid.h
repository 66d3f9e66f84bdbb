/* A product of factors with a host at each place; the dimensions have no order yet. */
#pragma once

#include "daemon/lib/cabling/cabling.h"
#include "daemon/lib/cabling/network.h"

#define GRID_FACTORS_MOST 10u /* 2^10 nodes */

struct grid_factor {
    uint32_t size;
    bool wrap;
    const struct graph *graph; /* NULL: a ring or line */
};

struct grid {
    unsigned factors;
    struct grid_factor factor[GRID_FACTORS_MOST];
    uint32_t nodes;
    uint32_t *host; /* by place: row-major, the last factor varies fastest */
};

static inline uint32_t grid_stride(const struct grid *g, unsigned factor)
{
    uint32_t stride = 1;

    for (unsigned i = factor + 1; i < g->factors; i++)
        stride *= g->factor[i].size;
    return stride;
}

/* Finds the prime factors of a network, of which it is the Cartesian product. */

/* Factors the network of all nodes that have links, which must be connected. Sets *g, whose `host` the caller frees.
 * `other`: factors may be graphs of no kind, which are then kept for ever (graph_of_edges()). Returns 1; 0 if the network has no such factors; -1 with
 * *e if there is no memory.
 *
 * The links fall into classes, one for each factor: the finest equivalence in which two links are together if they are
 * related by distances (d(a,c) + d(b,d) is not d(a,d) + d(b,c)), or meet at a node that is the only common neighbour
 * of their other ends. Feder: Product Graph Representations (1992). */
int factoring_find(struct grid *g, const struct network *n, bool other, struct error *e);

/* Chooses the ranks among all numberings of a network: the names in order of rank are the first possible. */

/* Makes rings of four from pairs of lines of two. Returns 0, or -1 with *e. */
int numbering_join_lines(struct grid *g, struct error *e);

/* Sets *t and host_at, by rank, with room for all nodes. Hosts are compared by their numbers. With `wanted`, the
 * dimensions get its order. Returns 0, or -1 with *e: the network has too many dimensions or ports (ERROR_REFUSED), or
 * there is no memory. */
int numbering_choose(const struct grid *g, const struct torus *wanted, struct torus *t,
                     uint32_t *host_at, struct error *e);
