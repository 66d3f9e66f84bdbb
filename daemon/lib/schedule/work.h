/* An estimate of the work of following the routes of an algorithm. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/schedule/algorithm.h"

/* Progress of long computations. They report it to a function of their thread, if there is one; the
 * daemon sets none. */

/* Called often. `done` is the part of the computation that is done, from 0 to 1, or negative if
 * that is not known. */
typedef void watch_fn(void *context, double done);

/* Sets the function for this thread; NULL: none. */
void watch_set(watch_fn *fn, void *context);

/* Calls the function, if there is one. */
void watch_tell(double done);

/* Counts one of `all` similar pieces of work in *done, and reports progress now and then; `all` is
 * 0 if their number is not known. */
static inline void watch_count(uint64_t *done, uint64_t all)
{
    if ((++*done & 0xfff) == 0)
        watch_tell(all > 0 ? (double)*done / (double)all : -1);
}

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

/* What schedule_verify() does (verify.h): whether it counts by the algorithm's rule for its messages;
 * otherwise how many routes it follows, between nodes of a line where these make up all others; and
 * the legs and hops of these routes, roughly, or the messages of the rule with their hops. */
bool work_by_rule(const struct torus *t, const struct algorithm *a);
double work_routes_followed(const struct torus *t, const struct algorithm *a);
double work_to_verify(const struct torus *t, const struct algorithm *a);

/* Returns 0 if `work` is at most `most`, otherwise -1 with *e (ERROR_REFUSED). */
int work_check(const struct torus *t, const struct algorithm *a, double work, uint64_t most,
               struct error *e);
