/* The direct route between two nodes: a leg in each dimension where they differ, dimension 0 first,
 * in consecutive steps. For algorithms that send every block separately. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_STRAIGHT_H
#define TORUSD_SCHEDULE_ALGORITHMS_STRAIGHT_H

#include "daemon/schedule/algorithm.h"

/* Whether no shortest path in one dimension is longer than a leg can be: 65535 hops. */
bool straight_fits(const struct torus *t);

/* Whether a dimension has an exact opposite, at the same distance both ways round. Which one a block
 * takes depends on the parity of its source's coordinates in such dimensions: half of the nodes of
 * a ring go each way. */
static inline bool straight_has_opposite(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] && t->size[dim] % 2 == 0;
}

/* Writes the legs of the route, the first one in `step`. Returns how many: at most t->dims. */
uint32_t straight_route(const struct torus *t, uint32_t source, uint32_t destination, uint32_t step,
                        struct leg *legs);

#endif
