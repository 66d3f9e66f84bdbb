/* A schedule that is not in the registry: dimension-ordered, with one leg of any length in each dimension. Even
 * segments take the dimensions in ascending order, odd segments in descending order. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

static inline uint32_t one_leg_a_dimension(const struct torus *t)
{
    return t->dims;
}

static inline uint32_t long_legs(const struct torus *t, uint32_t source, uint32_t destination,
                                 uint32_t segment, struct leg *legs)
{
    uint32_t from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], count = 0;

    torus_coordinates(t, source, from);
    torus_coordinates(t, destination, to);
    for (unsigned i = 0; i < t->dims; i++) {
        unsigned dim = segment % 2 == 0 ? i : t->dims - 1 - i;
        int direction = 1;
        uint32_t hops = torus_shortest(t, dim, from[dim], to[dim], &direction);
        if (hops > 0)
            legs[count++] = (struct leg){i, (uint16_t)hops, (uint8_t)dim, (int8_t)direction};
    }
    return count;
}
