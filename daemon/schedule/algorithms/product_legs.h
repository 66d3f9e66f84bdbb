/* The routes of a product's exchange (product.h) as legs of single hops, for a1 and a2. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_PRODUCT_LEGS_H
#define TORUSD_SCHEDULE_ALGORITHMS_PRODUCT_LEGS_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/product.h"

/* Writes the route of a block on a torus or mesh. Returns the number of legs, at most
 * product_legs_most(). */
uint32_t product_legs(const struct torus *t, enum product_algorithm a, uint32_t source,
                      uint32_t destination, struct leg *legs);
uint32_t product_legs_most(const struct torus *t);

#endif
