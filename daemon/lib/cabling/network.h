/* A multigraph of nodes: what is wanted, or what the cables make. */
#pragma once

#include "daemon/lib/cabling/wiring.h"

struct network {
    uint32_t nodes;
    uint32_t links;      /* between different nodes */
    uint32_t *first;     /* by node, and one more: its neighbours in `neighbour` */
    uint32_t *neighbour; /* each once, in rising order */
    uint32_t *degree;    /* by node: its links; two links to one neighbour count as two */
    uint8_t *count;      /* node * nodes + node: links between the two */
};

/* The network of a torus, or of the cables; with at least `nodes` nodes, of which the last may have no links. Loops
 * are left out. Return 0, or -1 with *e and nothing to free. */
int network_of_torus(struct network *n, const struct torus *t, uint32_t nodes, struct error *e);
int network_of_cables(struct network *n, const struct wiring *w, uint32_t nodes, struct error *e);
void network_free(struct network *n);

static inline uint8_t network_links(const struct network *n, uint32_t a, uint32_t b)
{
    return n->count[(size_t)a * n->nodes + b];
}

/* Whether the links connect all nodes that have any. */
bool network_connected(const struct network *n);
