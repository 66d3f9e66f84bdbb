/* The work of following the routes of an algorithm, estimated beforehand. */
#ifndef TORUSD_SCHEDULE_WORK_H
#define TORUSD_SCHEDULE_WORK_H

#include "daemon/schedule/algorithm.h"

/* Limits in legs and hops. WORK_QUICK takes half a second, or some seconds if there are more
 * messages than the processor's caches hold (AT2 on 128x128 takes half of it). WORK_MOST, the
 * work of all trees on 64x64, takes 64 times as long. */
#define WORK_QUICK (UINT64_C(1) << 26)
#define WORK_MOST (UINT64_C(1) << 32)

/* The number of different routes: those of the sources whose routes do not follow from others by
 * a move. */
double work_routes(const struct torus *t, const struct algorithm *a);

/* Legs and hops of these routes, about, and of the routes of all sources. The torus must be
 * accepted. */
double work_of(const struct torus *t, const struct algorithm *a);
double work_of_all(const struct torus *t, const struct algorithm *a);

/* Whether `work` is at most `most`. Returns 0, or -1 with *e (ERROR_REFUSED). */
int work_check(const struct torus *t, const struct algorithm *a, double work, uint64_t most,
               struct error *e);

#endif
