/* Builds a node's plan from the routes by (class, offset): asks for one route for each class of
 * sources within the algorithm's translation period and each offset, and finds this node's part
 * in it. No list of all pairs is ever made. */
#ifndef TORUSD_SCHEDULE_ROUTES_PLAN_BUILD_H
#define TORUSD_SCHEDULE_ROUTES_PLAN_BUILD_H

#include "daemon/schedule/plan.h"

/* Fills *p for node `rank`. Returns 0 with *p, which the caller gives to plan_free(), or -1 with
 * *e set (no such node, algorithm refuses the torus, no memory) and nothing to free. */
int plan_build(struct plan *p, const struct torus *t, const struct algorithm *a, uint32_t rank,
               struct error *e);

/* Fills *p with the blocks of one source alone: of its tree, in an allgather. Otherwise as
 * plan_build(). */
int plan_build_source(struct plan *p, const struct torus *t, const struct algorithm *a,
                      uint32_t rank, uint32_t source, struct error *e);

#endif
