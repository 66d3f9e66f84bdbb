/* An estimate of the work of following the routes of an algorithm. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Limits in legs and hops. WORK_QUICK takes half a second, or some seconds if there are more
 * messages than the processor's caches hold (AT2 on 128x128 takes half of WORK_QUICK). WORK_MOST,
 * the work of all trees on 64x64, takes 64 times as long. */
#define WORK_QUICK (UINT64_C(1) << 26)
#define WORK_MOST (UINT64_C(1) << 32)

/* The number of different routes: those of the sources that no symmetry (algorithm.h) derives from
 * others. */
double work_routes(const struct torus *t, const struct algorithm *a);

/* Legs and hops, roughly, of these routes, and of the routes of all sources. The torus must be
 * accepted. */
double work_of(const struct torus *t, const struct algorithm *a);
double work_of_all(const struct torus *t, const struct algorithm *a);

/* Returns 0 if `work` is at most `most`, otherwise -1 with *e (ERROR_REFUSED). */
int work_check(const struct torus *t, const struct algorithm *a, double work, uint64_t most,
               struct error *e);
