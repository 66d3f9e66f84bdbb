/* Imaginary nodes: how an algorithm whose sizes must be multiples of some number runs on any torus.
 * Every dimension is padded to the next multiple; the added nodes are spread evenly over the ring,
 * and each is hosted by the nearest real node before it. A hop between nodes of one host costs
 * nothing, so it is left out; blocks from and to imaginary nodes do not exist. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_IMAGINARY_H
#define TORUSD_SCHEDULE_ALGORITHMS_IMAGINARY_H

#include "daemon/schedule/algorithm.h"

/* Nodes along a padded dimension. A dimension of 1 has no links and stays as it is. */
uint32_t imaginary_size(uint32_t size, uint32_t multiple);

/* The translation period of an algorithm on the torus, if on the padded torus it is
 * `padded_period` (which divides `multiple`) in every dimension of more than 1. */
void imaginary_period(const struct torus *t, uint32_t multiple, uint32_t padded_period,
                      uint32_t *period);

/* A route on the padded torus between two nodes given by their coordinates. It goes round each
 * dimension once at most. */
typedef uint32_t padded_route_fn(const struct torus *padded, const uint32_t *from,
                                 const uint32_t *to, struct leg *legs);

/* The route of a block on the torus: that of `route`, in real coordinates and without the legs that
 * cost nothing. `legs` has room for the padded route. */
uint32_t imaginary_route(const struct torus *t, uint32_t multiple, padded_route_fn *route,
                         uint32_t source, uint32_t destination, struct leg *legs);

#endif
