/* The route of one block by AR (ar.c) on a ring of even size, for `ar` and for the logical rings of
 * `at2`. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

struct ring {
    uint32_t nodes;  /* even */
    uint32_t step;   /* the ring's first step */
    uint16_t stride; /* hops on the torus from one node of the ring to the next */
    uint8_t dim;
};

/* The direction in which AR sends a block to the exact opposite of its source; `to` is the
 * destination. */
static inline int ring_tie(uint32_t to)
{
    return to % 2 == 0 ? 1 : -1;
}

/* Writes the legs from ring node `from` to ring node `to`. `tie` is the direction if they are exact
 * opposites. Returns how many: at most ring_steps(), 0 if the nodes are the same. */
uint32_t ring_route(const struct ring *ring, uint32_t from, uint32_t to, int tie, struct leg *legs);

/* Steps of an exchange on a ring. */
static inline uint32_t ring_steps(uint32_t nodes)
{
    return nodes / 2;
}
