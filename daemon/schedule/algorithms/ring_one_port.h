/* AR1's rule for one block on a ring of even size, for `ar1` and for the logical rings of the other
 * one-port algorithms. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_RING_ONE_PORT_H
#define TORUSD_SCHEDULE_ALGORITHMS_RING_ONE_PORT_H

#include "daemon/schedule/algorithms/ring.h"

/* Steps that an exchange on a ring takes. Two nodes swap and are done; the paper's formula gives
 * them the last swap too, with nothing in it. */
static inline uint32_t ring_one_port_steps(uint32_t nodes)
{
    return nodes == 2 ? 1 : (nodes + 3) / 4 + 1;
}

/* Writes the legs from ring node `from` to ring node `to`. The last swap is in step `last`, at
 * least that of the ring's own ring_one_port_steps(): where rings of different lengths work side by
 * side, all have it together. Returns how many: at most ring_one_port_steps(), none if the nodes
 * are the same. */
uint32_t ring_one_port_route(const struct ring *ring, uint32_t from, uint32_t to, uint32_t last,
                             struct leg *legs);

#endif
