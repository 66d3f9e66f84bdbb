/* The direct route between two nodes: a leg in each dimension in which they differ, dimension 0
 * first, in consecutive steps. For algorithms that send every block separately. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Whether every shortest path within one dimension fits in a leg: at most 65535 hops. */
bool straight_fits(const struct torus *t);

/* Whether nodes have an exact opposite in this dimension, at the same distance both ways round. The
 * parity of the source's coordinates in such dimensions decides which way its blocks take, so that
 * half of the nodes of a ring send each way. */
static inline bool straight_has_opposite(const struct torus *t, unsigned dim)
{
    return t->wrap[dim] && t->size[dim] % 2 == 0;
}

/* Writes the legs of the route, the first one in `step`. Returns how many: at most
 * straight_most_legs(). */
uint32_t straight_route(const struct torus *t, uint32_t source, uint32_t destination, uint32_t step,
                        struct leg *legs);
