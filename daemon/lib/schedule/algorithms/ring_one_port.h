/* The route of one block by AR1 (ar1.c) on a ring of even size, for `ar1` and for the logical rings
 * of the other one-port algorithms. */
#pragma once

#include "daemon/lib/schedule/algorithms/ring.h"

/* Steps of an exchange on a ring. Two nodes need a single swap; the paper's formula counts an empty
 * last swap for them. */
static inline uint32_t ring_one_port_steps(uint32_t nodes)
{
    return nodes == 2 ? 1 : (nodes + 3) / 4 + 1;
}

/* Writes the legs from ring node `from` to ring node `to`. The last swap is in step `last`, at the
 * earliest the last of the ring's own ring_one_port_steps(): rings of different lengths that work
 * side by side have it in the same step. Returns how many legs: at most ring_one_port_steps(), 0 if
 * the nodes are the same. */
uint32_t ring_one_port_route(const struct ring *ring, uint32_t from, uint32_t to, uint32_t last,
                             struct leg *legs);
