/* The networks that nearly fit the cables, by number of links and by how many links each node has. */
#pragma once

#include "daemon/lib/cabling/network.h"

struct shape {
    struct torus torus;
    uint32_t fewest_moves; /* at least so many are needed */
};

struct shapes {
    struct shape *
        shape; /* in the order in which they are preferred: those with only rings and lines first, then those
                          * with more rings, with fewer dimensions, and nearer to a square */
    uint32_t shapes;
};

/* Returns the fewest moves that can turn the cables into a network; UINT32_MAX without memory. */
uint32_t shapes_fewest_moves(const struct torus *t, const struct network *seen, uint32_t hosts);

/* Lists the networks of so many nodes that may be made with at most `moves` moves; a host that is missing (more nodes
 * than `hosts`) counts as one move. Returns 0, or -1 with *e. */
int shapes_list(struct shapes *s, uint32_t nodes, const struct network *seen, uint32_t hosts,
                uint32_t moves, struct error *e);
void shapes_free(struct shapes *s);
