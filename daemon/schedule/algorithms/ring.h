/* AR's rule for one block on a ring of even size, for `ar` and for the logical rings of `at2`. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_RING_H
#define TORUSD_SCHEDULE_ALGORITHMS_RING_H

#include "daemon/schedule/algorithm.h"

struct ring {
    uint32_t nodes;  /* even */
    uint32_t step;   /* the ring's first step */
    uint16_t stride; /* hops of the torus to the next node of the ring */
    uint8_t dim;
};

/* The direction that AR takes to the exact opposite of a node. */
static inline int ring_tie(uint32_t to)
{
    return to % 2 == 0 ? 1 : -1;
}

/* Writes the legs from ring node `from` to ring node `to`; `tie` is the direction if they are
 * opposite. Returns how many: at most ring_steps(), none if the nodes are the same. */
uint32_t ring_route(const struct ring *ring, uint32_t from, uint32_t to, int tie, struct leg *legs);

/* Steps that an exchange on a ring takes. */
static inline uint32_t ring_steps(uint32_t nodes)
{
    return nodes / 2;
}

#endif
