/* Complete exchange on a one-port line of k nodes, for the submeshes of `mt`. A leg over the whole
 * line joins its ends to a ring, along which the blocks move from node to node.
 *
 * Blocks for the next floor(k/2) nodes move in direction +, in floor(k/2) shifts. In a shift every
 * node passes all blocks for nodes beyond to the next node, and the last node passes them to the
 * first, by one leg back over the line. No other leg uses the channels in that direction; the nodes
 * inside the leg relay it cut-through, as a one-port node can while it sends and receives. The
 * blocks for the other ceil(k/2)-1 nodes then move in direction -.
 *
 * This takes k-1 steps and floor(k^2/4) blocks. In each step a node sends one message and receives
 * one, and no two messages share a channel. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Steps of an exchange on a line of k nodes. */
static inline uint32_t line_one_port_steps(uint32_t k)
{
    return k - 1;
}

/* The most legs of a route. */
static inline uint32_t line_one_port_legs(uint32_t k)
{
    return k / 2;
}

/* Writes the legs of a block from node `from` to node `to` of the line, 0..k-1, along `dim`, in an
 * exchange that begins with `step`. Returns how many: at most line_one_port_legs(), 0 if the nodes
 * are the same. */
uint32_t line_one_port_route(uint32_t k, uint8_t dim, uint32_t step, uint32_t from, uint32_t to,
                             struct leg *legs);
