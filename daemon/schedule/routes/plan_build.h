/* Makes a node's plan of the routes by (class, offset): for each class of sources within the
 * algorithm's translation period and each offset it asks for one route, and finds this node's part
 * in it; no list of all pairs is ever made. */
#ifndef TORUSD_SCHEDULE_ROUTES_PLAN_BUILD_H
#define TORUSD_SCHEDULE_ROUTES_PLAN_BUILD_H

#include "daemon/schedule/plan.h"

/* Fills *p for node `rank`. Owned by the caller afterwards, freed with plan_free(). Returns 0, or
 * -1 with *e set (no such node, algorithm refuses the torus, no memory) and nothing to free. */
int plan_build(struct plan *p, const struct torus *t, const struct algorithm *a, uint32_t rank,
               struct error *e);

/* The same for the blocks of one source alone: its tree, in an allgather. */
int plan_build_source(struct plan *p, const struct torus *t, const struct algorithm *a,
                      uint32_t rank, uint32_t source, struct error *e);

#endif
