/* A complete exchange with all ports on a product of few nodes, found as one graph
 * (graph/graph_exchange.h): for products that A3 (a3.c) cannot divide into equal halves. Every
 * channel carries at most one block in a step, and every path is a shortest path.
 *
 * If every factor is a ring, a complete graph or another graph that `moves`, the exchange is sought in
 * three ways, and the one with the fewest steps is kept:
 * - All nodes use the same hops for the same offset.
 * - They do so, but in rings of even size, nodes with an odd coordinate use the mirrored hops of those
 *   with an even one. So blocks for opposite nodes go + from one half of the nodes, - from the
 *   other, as in AR (all_port_rings.c).
 * - Each block has hops of its own, as always in products with other factors.
 *
 * A ring of 2 counts as one link: its links lead to the same node, and only one of them is used. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

struct whole;

/* Returns the exchange on these dimensions of a torus, or NULL if they have too many nodes or hops
 * (GRAPH_NODES_MOST, GRAPH_EXCHANGE_HOPS_MOST), or without memory. The first call makes the
 * exchange, which is kept until the process ends. Thread-safe. */
const struct whole *whole_exchange(const struct torus *t, const uint8_t *dim, unsigned dims);

/* Its steps, which are also the blocks of the busiest channels together. */
uint32_t whole_steps(const struct whole *w);

/* Sets the translation period (algorithm.h) of these dimensions. */
void whole_period(const struct whole *w, const uint8_t *dim, uint32_t *period);

/* Writes the legs of a block in the exchange on these dimensions, which begins at `step`; `from`
 * and `to` are coordinates of the torus. Returns how many. */
uint32_t whole_route(const struct whole *w, const uint8_t *dim, const uint32_t *from,
                     const uint32_t *to, uint32_t step, struct leg *legs);
