/* Routes for all segments of all blocks on a damaged torus that keep the load of the busiest
 * channel as low as the search can. The search begins with the routes of `stream`, which are the
 * best on a whole torus, and with the cheapest way where such a route is broken. Then every source
 * in turn looks for its cheapest ways, where a channel costs more the closer its load is to the
 * largest one, and moves the segments for which that saves something, until nothing is saved any
 * more.
 *
 * The largest load comes within a few per cent of the optimum, which is that of the
 * multi-commodity flow (tests/bench/damaged.py compares them). All numbers are integers: every
 * node finds the same routes from the same damage. */
#ifndef TORUSD_SCHEDULE_DETOUR_BALANCE_H
#define TORUSD_SCHEDULE_DETOUR_BALANCE_H

#include "daemon/schedule/damage.h"

struct balance {
    uint32_t nodes;
    uint32_t segments; /* segments of a block */
    uint32_t longest;  /* hops of the longest route */
    uint32_t busiest;  /* segments on the busiest channel */
    uint32_t stride;
    uint16_t *hops; /* by segment of a block: hops of its route, 0 if there is no such block */
    uint8_t *port;  /* ports of the routes, each from segment * stride on */
};

/* The caller frees *b with balance_free(). Returns 0; or -1 with *e and nothing to free: the
 * torus is in parts (ERROR_LINK), too large (ERROR_REFUSED), no memory. */
int balance_find(struct balance *b, const struct damage *d, struct error *e);
void balance_free(struct balance *b);

/* The index of the segment in the arrays. */
static inline size_t balance_index(const struct balance *b, uint32_t source, uint32_t destination,
                                   uint32_t segment)
{
    return ((size_t)source * b->nodes + destination) * b->segments + segment;
}

static inline const uint8_t *balance_ports(const struct balance *b, size_t index)
{
    return b->port + index * b->stride;
}

#endif
