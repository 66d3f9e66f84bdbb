#include "client/cli/reporting/plan_check.h"

#include <string.h>

#include "client/theory/cost.h"
#include "daemon/lib/schedule/algorithms/registry.h"

#define SLOW_PLAN 1.4   /* times the bound: a plan that costs less is not to blame */
#define BETTER 0.8      /* of the blocks: an algorithm that needs more is not worth a sentence */
#define OF_THE_RUN 0.25 /* the plan explains at least so much of the time beyond the bound */
#define SLOW_RUN                                                                                   \
    0.7 /* a run that reaches so much of the bound is not compared with other algorithms */

static double number_of(const json_t *run, const char *name)
{
    const double value = json_number_value(json_object_get(run, name));

    return value > 0 && value < 1e15 ? value : 0;
}

/* Blocks on the busiest channel of each step, summed over the steps; 0: not known. */
static double blocks_of(const struct torus *t, const struct algorithm *a)
{
    struct cost cost;
    struct error e;

    if (cost_find(t, a->name, &cost, &e) != 0)
        return 0;
    return cost.critical_path > 0 ? cost.critical_path : cost.counts.transmission;
}

/* The one with the fewest blocks; of equal ones, one that runs without steps, since none of its nodes waits for another
 * one's step. */
static void find_better(const struct torus *t, const struct algorithm *own, struct plan_check *c)
{
    bool streams = false;

    c->better_blocks = BETTER * c->blocks;
    for (size_t i = 0; i < algorithm_count(); i++) {
        const struct algorithm *a = algorithm_at(i);
        struct error e;
        if (a->operation != own->operation || algorithm_accepts(a, t, &e) != 0 ||
            (!cost_can_enumerate(t, a) && a->family == NULL))
            continue;
        const double blocks = blocks_of(t, a);
        if (blocks <= 0 || blocks > c->better_blocks ||
            (blocks >= c->better_blocks && c->better != NULL && (streams || !a->streaming)))
            continue;
        c->better = a->name;
        streams = a->streaming;
        c->better_blocks = blocks;
    }
    if (c->better != NULL)
        c->better_seconds = c->plan_seconds * c->better_blocks / c->blocks;
}

void plan_check_make(const json_t *run, const struct torus *t, struct plan_check *c)
{
    const char *name = json_string_value(json_object_get(run, "algorithm"));
    const struct algorithm *a = name != NULL ? algorithm_find(name) : NULL;

    *c = (struct plan_check){.seconds = number_of(run, "seconds"),
                             .bound_seconds = number_of(run, "bound_seconds"),
                             .algorithm = a != NULL ? a->name : NULL};
    if (a == NULL || c->bound_seconds <= 0 || c->seconds <= 0 ||
        json_object_get(run, "without") != NULL || json_object_get(run, "missing") != NULL)
        return;
    const double own_bound = algorithm_bound(a, t);
    if (own_bound <= 0)
        return;
    const double block = c->bound_seconds / own_bound;
    c->bound_blocks =
        a->operation == OPERATION_EXCHANGE ? torus_bound_all_port(t) : torus_bound_broadcast(t);
    c->bound_seconds = c->bound_blocks * block;
    if (c->bound_seconds > SLOW_RUN * c->seconds)
        return;
    c->blocks = blocks_of(t, a);
    c->plan_seconds = c->blocks * block;
    if (plan_check_blames_algorithm(c))
        find_better(t, a, c);
}

bool plan_check_blames_algorithm(const struct plan_check *c)
{
    return c->plan_seconds > SLOW_PLAN * c->bound_seconds &&
           c->plan_seconds - c->bound_seconds > OF_THE_RUN * (c->seconds - c->bound_seconds);
}
