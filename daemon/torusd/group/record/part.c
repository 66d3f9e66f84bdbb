#include "daemon/torusd/group/record/part.h"

#include "daemon/lib/schedule/algorithms/registry.h"

int part_detour(struct part *p, struct error *e)
{
    return p->detour != NULL ? 1 : planner_get_detour(p->planner, &p->damage, &p->detour, e);
}

int part_trees(struct part *p, struct error *e)
{
    int result = !p->has_trees && p->finds_routes ? part_detour(p, e) : 1;

    if (result <= 0 || p->has_trees)
        return result;
    const struct algorithm *a =
        p->finds_routes ? detour_reductions(p->detour) : even_algorithm(p->torus);
    if (reduction_build(&p->trees, p->torus, a, p->rank, e) != 0)
        return -1;
    p->has_trees = true;
    return 1;
}

struct part *part_find(const struct session *s, uint32_t mask)
{
    struct part *p = s->part;

    while (p != NULL && p->mask != mask)
        p = p->next;
    return p;
}

void part_tell_lost(const struct part *p, struct engine *engine)
{
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if (engine_has_lost(&p->session->base, port) && p->port[port] >= 0)
            engine_lose_port(engine, (unsigned)p->port[port]);
}
