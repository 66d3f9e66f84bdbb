/* The most blocks in transit at any node when all nodes run a schedule's steps in lockstep. Found
 * from the routes of one source of each class, without building any node's plan. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Sets *peak to the largest peak_transit (plan.h) of any node. Returns 0, or -1 with *e: the
 * algorithm refuses the torus, no memory, or more blocks than can be counted (ERROR_MEMORY). */
int plan_peak_transit(const struct torus *t, const struct algorithm *a, uint32_t *peak,
                      struct error *e);

/* The most blocks that wait at the end of any of `steps` steps, from the change in each step:
 * change[0], change[stride], change[2 * stride], ... */
uint32_t peak_of_changes(const int32_t *change, size_t stride, uint32_t steps);
