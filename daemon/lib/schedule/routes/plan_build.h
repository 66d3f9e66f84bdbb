/* Builds a node's plan from the routes of one source of each class (routes.h): finds the node's
 * part in every route and its translations. No list of all pairs of nodes is made. */
#pragma once

#include "daemon/lib/schedule/plan.h"

/* Fills *p for node `rank`; the torus and the algorithm are not needed afterwards. Returns 0 with
 * *p, which the caller gives to plan_free(), or -1 with *e and nothing to free: no such node
 * (ERROR_USAGE), the algorithm refuses the torus, no memory. */
int plan_build(struct plan *p, const struct torus *t, const struct algorithm *a, uint32_t rank,
               struct error *e);

/* As plan_build(), for the blocks of one source alone; in an allgather, for its trees. */
int plan_build_source(struct plan *p, const struct torus *t, const struct algorithm *a,
                      uint32_t rank, uint32_t source, struct error *e);
