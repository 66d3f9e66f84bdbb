/* Routes for all segments of all blocks over what is left of a damaged torus, so that the busiest
 * channel carries as little as can be found. It begins with the routes of `stream`, which are the best
 * on a whole torus, and with the cheapest way where one of them is broken. Then every source in turn
 * looks for its cheapest ways, where a channel costs the more the closer its load is to the largest
 * one, and moves those segments that save by it; until that does not help any more.
 *
 * The largest load comes within a few per cent of the least that is possible, which is that of the
 * multi-commodity flow (tests/bench/damaged.py compares them). Integers only: every node finds the
 * same routes from the same damage. */
#ifndef TORUSD_SCHEDULE_DETOUR_BALANCE_H
#define TORUSD_SCHEDULE_DETOUR_BALANCE_H

#include "daemon/schedule/damage.h"

struct balance {
    uint32_t nodes;
    uint32_t segments; /* of a block */
    uint32_t longest;  /* hops of the longest route */
    uint32_t busiest;  /* segments on the busiest channel */
    uint32_t stride;
    uint16_t *hops; /* by segment of a block: of its route, 0 if there is no such block; */
    uint8_t *port;  /* and by which ports it goes, from segment * stride on */
};

/* Owned by the caller afterwards, freed with balance_free(). Returns 0; or -1 with *e and nothing to
 * free: the torus is in parts (ERROR_LINK), too large (ERROR_REFUSED), no memory. */
int balance_find(struct balance *b, const struct damage *d, struct error *e);
void balance_free(struct balance *b);

/* Where the segment stands in the arrays. */
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
