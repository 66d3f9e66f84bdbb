/* The costs of A3 according to its paper (corollary 3), for tori that it accepts. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_A3_H
#define TORUSD_SCHEDULE_ALGORITHMS_A3_H

#include "daemon/schedule/torus.h"

uint32_t a3_startups(const struct torus *t);
uint64_t a3_transmission(const struct torus *t);

#endif
