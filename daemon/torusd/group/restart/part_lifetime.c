#include "daemon/torusd/group/restart/part_lifetime.h"

#include <stdlib.h>

#include "daemon/torusd/group/calls/calls.h"
#include "daemon/torusd/group/record/early_frames.h"
#include "daemon/torusd/group/record/part_torus.h"
#include "daemon/torusd/group/restart/agreement.h"
#include "daemon/torusd/group/restart/calls_restart.h"

static void on_planned(void *context)
{
    struct part *p = context;
    session_is_due(p->session);
}

/* Finds the tree of waves and short vectors. Returns 0, or -1 with *e. */
static int find_tree(struct part *p, struct error *e)
{
    uint32_t root = reduction_root(p->torus);

    if (members_at(&p->members, root) == TORUS_NO_NODE)
        root = p->members.node[0];
    return p->finds_routes ? reduction_build_around(&p->tree, &p->damage, root, p->rank, e)
                           : reduction_build_single(&p->tree, p->torus, root, p->rank, e);
}

struct part *part_new(struct session *s, uint32_t mask, struct error *e)
{
    const struct torus *whole = router_torus(s->base.set.router);
    uint32_t node = router_rank(s->base.set.router);
    struct part *p = calloc(1, sizeof *p);

    if (p == NULL)
        return (void)error_set(e, ERROR_MEMORY, "out of memory for a group"), NULL;
    p->session = s;
    p->mask = mask;
    if (mask == 0) {
        p->torus = whole;
        p->rank = node;
        p->planner = s->planner;
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            p->port[port] = (int8_t)port;
    } else {
        for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
            p->port[port] = -1;
        p->place = calloc(1, sizeof *p->place);
        if (p->place == NULL)
            goto no_memory;
        part_cut_out(p, whole, node);
        p->planner = planner_new(p->torus, p->rank, &s->groups->workers, on_planned, p);
        if (p->planner == NULL)
            goto no_memory;
    }
    p->agreed = true;
    p->undamaged_eager = limits_of(whole, p->torus, false).eager;
    if (part_take_damage(p, e) != 0 ||
        members_init(&p->members, p->torus->nodes, p->rank, s->shrunk ? s->damage.gone : NULL, e) !=
            0 ||
        find_tree(p, e) != 0) {
        part_free(p);
        return NULL;
    }
    p->limits = limits_of(whole, p->torus, p->finds_routes);
    return p;
no_memory:
    part_free(p);
    (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
    return NULL;
}

/* Frees the routes and trees that avoid what is down. */
static void free_routes(struct part *p)
{
    reduction_free(&p->tree);
    p->tree = (struct reduction_trees){0};
    if (p->has_trees)
        reduction_free(&p->trees);
    p->has_trees = false;
    if (p->detour != NULL)
        planner_put_detour(p->planner, p->detour);
    p->detour = NULL;
    damage_free(&p->damage);
    p->damage = (struct damage){0};
    p->finds_routes = false;
}

void part_suspend(struct part *p)
{
    agreement_free(p);
    calls_suspend(p);
    early_frames_free(p);
    free_routes(p);
    p->agreed = false;
}

int part_renew(struct part *p, struct error *e)
{
    free_routes(p); /* of an attempt that did not start */
    if (part_take_damage(p, e) != 0 || find_tree(p, e) != 0)
        return -1;
    p->limits = limits_of(router_torus(p->session->base.set.router), p->torus, p->finds_routes);
    return 0;
}

void part_free(struct part *p)
{
    agreement_free(p);
    while (p->calls != NULL)
        call_free(p->calls);
    calls_forget(p);
    early_frames_free(p);
    free_routes(p);
    members_free(&p->members);
    if (p->mask != 0 && p->planner != NULL)
        planner_free(p->planner);
    free(p->place);
    free(p);
}
