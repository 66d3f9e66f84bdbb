/* The routes of a product's exchange (product.h) as legs of single hops, for a1 and a2. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/product.h"

/* Whether every factor has an exchange, and the schedule not too many steps. */
bool product_legs_fit(const struct torus *t, enum product_algorithm a);

/* Writes the route of a block; the torus must fit. Returns the number of legs, at most
 * product_legs_most(). */
uint32_t product_legs(const struct torus *t, enum product_algorithm a, uint32_t source,
                      uint32_t destination, struct leg *legs);
uint32_t product_legs_most(const struct torus *t);
