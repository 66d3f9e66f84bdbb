/* The costs of the CC-cube algorithm on tori that it accepts, in Q packets (degree; family.h). */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_CCCUBE_H
#define TORUSD_SCHEDULE_ALGORITHMS_CCCUBE_H

#include "daemon/schedule/algorithms/family.h"

extern const struct family family_cccube;

struct cost_counts cccube_counts(const struct torus *t, uint32_t degree);

#endif
