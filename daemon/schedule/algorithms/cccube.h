/* The CC-cube algorithms (cccube.c): one for each number of packets, Q, which is the degree in the
 * family (family.h). */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_CCCUBE_H
#define TORUSD_SCHEDULE_ALGORITHMS_CCCUBE_H

#include "daemon/schedule/algorithms/family.h"

extern const struct family family_cccube;

/* Steps, blocks and hops of the exchange in `degree` packets. The algorithm must accept the
 * torus. */
struct cost_counts cccube_counts(const struct torus *t, uint32_t degree);

#endif
