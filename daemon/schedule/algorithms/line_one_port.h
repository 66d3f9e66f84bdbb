/* Complete exchange on a one-port line of k neighbours, for the submeshes of `mt`: a leg over the
 * whole line joins its two ends to a ring, around which the blocks go, node by node.
 *
 * Blocks for the next floor(k/2) nodes of the ring go one way, in floor(k/2) shifts. In a shift
 * every node passes everything for nodes beyond to the next node, and the last node to the
 * first, by one leg back over the line. That leg has the channels in its direction to itself;
 * the nodes inside it relay it cut-through, which a one-port node can do beside its own sending
 * and receiving. Then the blocks for the other ceil(k/2)-1 nodes go the other way likewise. This
 * takes k-1 steps, in each of which a node sends one message and receives one and no two
 * messages share a channel, and floor(k^2/4) blocks. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_LINE_ONE_PORT_H
#define TORUSD_SCHEDULE_ALGORITHMS_LINE_ONE_PORT_H

#include "daemon/schedule/algorithm.h"

/* Steps that an exchange on a line of k nodes takes. */
static inline uint32_t line_one_port_steps(uint32_t k)
{
    return k - 1;
}

/* The most legs of a route. */
static inline uint32_t line_one_port_legs(uint32_t k)
{
    return k / 2;
}

/* Writes the legs from the line's node `from` to its node `to`, 0..k-1, along `dim`; the exchange
 * begins with `step`. Returns how many: at most line_one_port_legs(), none if the nodes are the
 * same. */
uint32_t line_one_port_route(uint32_t k, uint8_t dim, uint32_t step, uint32_t from, uint32_t to,
                             struct leg *legs);

#endif
