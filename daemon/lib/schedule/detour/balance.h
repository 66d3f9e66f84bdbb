/* Routes for all segments of all blocks on a damaged torus. The search keeps the load of the
 * busiest channel as low as it can. It begins with the routes of `stream`, which are the best on a
 * whole torus; a segment whose route is broken takes the cheapest way. Then each source in turn
 * finds its cheapest ways, where a channel costs more the closer its load is to the largest one,
 * and moves the segments for which that saves something, until nothing is saved any more.
 *
 * The largest load comes within a few per cent of the optimum, a multi-commodity flow
 * (tests/bench/damaged.py compares the two). All numbers are integers, so that every node finds the
 * same routes for the same damage. */
#pragma once

#include "daemon/lib/schedule/damage.h"

struct balance {
    uint32_t nodes;
    uint32_t segments; /* segments of a block */
    uint32_t longest;  /* hops of the longest route */
    uint32_t busiest;  /* segments on the busiest channel */
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
