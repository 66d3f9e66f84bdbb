/* Imaginary nodes: how an algorithm whose sizes must be multiples of some number runs on any torus.
 * Every dimension is padded to the next multiple. The added nodes are spread evenly over the ring;
 * each is hosted by the nearest real node before it. Blocks from and to imaginary nodes do not
 * exist. A hop between two nodes of the same host is left out of the route. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* The size to which a dimension is padded. A dimension of 1 has no links and stays 1. */
uint32_t imaginary_size(uint32_t size, uint32_t multiple);

/* Sets the translation period (algorithm.h) on the real torus of an algorithm whose period on the
 * padded torus is `padded_period`, a divisor of `multiple`, in every dimension of more than one
 * node. */
void imaginary_period(const struct torus *t, uint32_t multiple, uint32_t padded_period,
                      uint32_t *period);

/* Writes a route on the padded torus between two nodes given by their coordinates; it goes round
 * each dimension at most once. Returns how many legs. */
typedef uint32_t padded_route_fn(const struct torus *padded, const uint32_t *from,
                                 const uint32_t *to, struct leg *legs);

/* Writes the route of a block: that of `route`, in real coordinates and without legs of no hops.
 * `legs` must have room for the padded route. Returns how many legs. */
uint32_t imaginary_route(const struct torus *t, uint32_t multiple, padded_route_fn *route,
                         uint32_t source, uint32_t destination, struct leg *legs);
