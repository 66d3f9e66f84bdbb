/* Simulates a streaming execution tick by tick: the time of a schedule of single hops if no node waits for a step.
 * Every channel of the full rate carries one segment in a tick; a slower channel takes longer in proportion. If several
 * segments wait for a port, the one with the most hops left is sent first; among equals, the one that came first; among
 * those that came in the same tick, the one from the lowest port. A segment that arrives in tick t can leave in tick t
 * + 1.
 *
 * At the beginning, a node's own segments wait in the order of (offset, segment). The offset is the
 * destination's coordinates minus the source's, modulo the sizes, as a row-major number, so that
 * all nodes of a class behave alike. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

#define SIMULATE_WORK_MOST (UINT64_C(1) << 28) /* legs and hops, as work.h estimates them */

/* Sets *ticks to the time when the last segment arrives, 0 on a torus of one node. Ignores the
 * steps of the routes, and counts a leg of several hops as single hops. One node of each class
 * (algorithm.h, period) stands for all. Memory and time grow with classes * N * segments * hops of
 * a route. Returns 0, or -1 with *e: the algorithm refuses the torus, is not for exchanges, or
 * takes more than SIMULATE_WORK_MOST (ERROR_REFUSED); no memory. */
int simulate_stream(const struct torus *t, const struct algorithm *a, uint64_t *ticks,
                    struct error *e);

/* The same on channels of these rates (NULL: all have the full rate). simulate_stream() uses the rates for which
 * routes were found. */
int simulate_stream_rated(const struct torus *t, const struct algorithm *a,
                          const struct damage *rates, uint64_t *ticks, struct error *e);

/* The least time that any execution can take: the larger of the all-port bound in segments and the
 * hops of the longest path. */
uint64_t simulate_bound(const struct torus *t, const struct algorithm *a);
