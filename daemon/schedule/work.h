/* How much work it is to follow the routes of an algorithm, estimated before it is begun. */
#ifndef TORUSD_SCHEDULE_WORK_H
#define TORUSD_SCHEDULE_WORK_H

#include "daemon/schedule/algorithm.h"

/* Legs and hops. WORK_QUICK takes half a second, some seconds where messages are so many that the
 * processor's caches do not hold them (AT2 on 128x128 takes half of it); WORK_MOST, as much as all trees
 * on 64x64, takes 64 times as long. */
#define WORK_QUICK (UINT64_C(1) << 26)
#define WORK_MOST (UINT64_C(1) << 32)

/* Different routes: of the sources that do not follow from others by moving them. */
double work_routes(const struct torus *t, const struct algorithm *a);

/* Legs and hops of these routes, about; of those of all sources. The torus must be accepted. */
double work_of(const struct torus *t, const struct algorithm *a);
double work_of_all(const struct torus *t, const struct algorithm *a);

/* Whether that much may be done: at most `most`. Returns 0, or -1 with *e (ERROR_REFUSED). */
int work_check(const struct torus *t, const struct algorithm *a, double work, uint64_t most,
               struct error *e);

#endif
