/* The most blocks in transit at any node, if all nodes run a schedule's steps at the same time.
 * Found by walking the routes of the source classes: no node's plan is built. */
#ifndef TORUSD_SCHEDULE_ROUTES_PEAK_H
#define TORUSD_SCHEDULE_ROUTES_PEAK_H

#include "daemon/schedule/algorithm.h"

/* The largest peak_transit (plan.h) of any node. Returns 0, or -1 with *e set (the algorithm
 * refuses the torus, no memory, more blocks than can be counted). */
int plan_peak_transit(const struct torus *t, const struct algorithm *a, uint32_t *peak,
                      struct error *e);

/* The most blocks waiting at the end of any of `steps` steps, from the change that each step makes:
 * change[0], change[stride], change[2 * stride], ... */
uint32_t peak_of_changes(const int32_t *change, size_t stride, uint32_t steps);

#endif
