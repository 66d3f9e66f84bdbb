/* The costs of A3 (a3.c) according to its paper, corollary 3. */
#pragma once

#include "daemon/lib/schedule/torus.h"

/* Steps, and blocks on the busiest channel summed over the steps. A3 must accept the torus. */
uint32_t a3_startups(const struct torus *t);
uint64_t a3_transmission(const struct torus *t);
