/* The whole torus, or a part of it that this node is in, as the engines of its calls see it. */
#include <stdlib.h>

#include "daemon/group/internal.h"
#include "daemon/schedule/algorithms/even.h"

/* The torus of the dimensions in the mask, and this node's ports in it. */
static void cut_out(struct part *p, const struct torus *whole)
{
    struct engine_part *place = p->place;
    struct torus *t = &place->torus;

    t->nodes = 1;
    for (unsigned dim = 0; dim < whole->dims; dim++) {
        if ((p->mask & 1u << dim) == 0)
            continue;
        t->size[t->dims] = whole->size[dim];
        t->wrap[t->dims] = whole->wrap[dim];
        t->nodes *= whole->size[dim];
        for (int direction = 1; direction >= -1; direction -= 2) {
            unsigned own = torus_port(t->dims, direction), port = torus_port(dim, direction);
            place->port[own] = (uint8_t)port;
            p->port[port] = (int8_t)own;
        }
        t->dims++;
    }
    p->torus = t;
}

/* The place in the part of a node of the whole. */
static uint32_t rank_in(const struct part *p, const struct torus *whole, uint32_t node)
{
    uint32_t coordinates[TORUS_MAX_DIMS], own[TORUS_MAX_DIMS];
    unsigned dims = 0;

    torus_coordinates(whole, node, coordinates);
    for (unsigned dim = 0; dim < whole->dims; dim++)
        if ((p->mask & 1u << dim) != 0)
            own[dims++] = coordinates[dim];
    return torus_rank(p->torus, own);
}

/* The node of the whole that is a member of the part `t` that `node` is in. */
static uint32_t node_of(const struct torus *whole, const struct torus *t, uint32_t mask,
                        uint32_t node, uint32_t member)
{
    uint32_t coordinates[TORUS_MAX_DIMS], own[TORUS_MAX_DIMS];
    unsigned dims = 0;

    torus_coordinates(whole, node, coordinates);
    torus_coordinates(t, member, own);
    for (unsigned dim = 0; dim < whole->dims; dim++)
        if ((mask & 1u << dim) != 0)
            coordinates[dim] = own[dims++];
    return torus_rank(whole, coordinates);
}

uint32_t part_node(const struct part *p, uint32_t member)
{
    const struct router *router = p->session->base.set.router;

    return p->mask == 0
               ? part_rank(p, member)
               : node_of(router_torus(router), p->torus, p->mask, router_rank(router), member);
}

/* --- what is out of order --- */

/* Of the whole, in the part that `node` is in. Returns 0, or -1 with *e. */
static int damage_in(struct damage *out, const struct damage *whole,
                     const struct engine_part *place, uint32_t mask, uint32_t node, struct error *e)
{
    const struct torus *t = &place->torus;

    if (damage_init(out, t, e) != 0)
        return -1;
    for (uint32_t member = 0; member < t->nodes; member++) {
        uint32_t there = node_of(&whole->torus, t, mask, node, member);
        for (unsigned port = 0; port < torus_ports(t); port++)
            if ((whole->dead[there] & 1u << place->port[port]) != 0)
                damage_add_link(out, member, port);
    }
    return 0;
}

int part_may_be(const struct session *s, uint32_t mask, struct error *e)
{
    const struct torus *whole = router_torus(s->base.set.router);
    struct part part = {.mask = mask};
    struct engine_part place = {0};
    char links[100];

    if (s->shrunk)
        return error_set(e, ERROR_REFUSED,
                         "a group without %s has no parts: of some of them members are missing",
                         damage_describe(&s->damage, links, sizeof links));
    part.place = &place;
    cut_out(&part, whole);
    for (uint32_t node = 0; s->damaged && node < whole->nodes; node++) {
        struct damage d;
        struct error why;
        if (node_of(whole, &place.torus, mask, node, 0) != node)
            continue; /* only once for each part */
        if (damage_in(&d, &s->damage, &place, mask, node, e) != 0)
            return -1;
        bool connected = damage_is_connected(&d, &why) == 0;
        damage_free(&d);
        if (!connected)
            return error_set(e, why.code,
                             "this part cannot be opened: without %s the part that node %u is in "
                             "falls into pieces",
                             damage_describe_links(&s->damage, links, sizeof links), node);
    }
    return 0;
}

/* Sets p->damage, if the part is damaged. Returns 0, or -1 with *e. */
static int take_damage(struct part *p, struct error *e)
{
    const struct session *s = p->session;
    int result;

    if (!s->damaged)
        return 0;
    result = p->mask == 0 ? damage_copy(&p->damage, &s->damage, e)
                          : damage_in(&p->damage, &s->damage, p->place, p->mask,
                                      router_rank(s->base.set.router), e);
    if (result != 0)
        return -1;
    p->damaged = !damage_is_none(&p->damage);
    return 0;
}

/* Members in the order of their nodes. */
static int number_members(struct part *p, struct error *e)
{
    const struct session *s = p->session;

    p->members = p->torus->nodes;
    p->own = p->rank;
    if (!s->shrunk)
        return 0;
    p->node = calloc(p->torus->nodes, sizeof *p->node);
    p->member = calloc(p->torus->nodes, sizeof *p->member);
    if (p->node == NULL || p->member == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a group");
    p->members = 0;
    for (uint32_t node = 0; node < p->torus->nodes; node++) {
        p->member[node] = s->damage.gone[node] ? TORUS_NO_NODE : p->members;
        if (!s->damage.gone[node])
            p->node[p->members++] = node;
    }
    p->own = p->member[p->rank];
    return 0;
}

int part_detour(struct part *p, struct error *e)
{
    return p->detour != NULL ? 1 : planner_detour(p->planner, &p->damage, &p->detour, e);
}

/* --- limits --- */

/* What the whole may use; all other parts together half as much. */
#define PARKED_MOST ((UINT64_C(4) << 20) / GROUP_SCALE)
#define ROUNDS_MOST ((UINT64_C(6) << 20) / GROUP_SCALE)

_Static_assert(GROUP_COPIES <= 8, "those of all parts are within a fraction of what they may park");

/* Of two calls that a late member has not made all that goes to it or through it is parked there: a
 * node's blocks as many times as they have hops, or a vector from each neighbour, with digests. Instead of
 * the first there may be several without a proof, which have no more bytes together. */
static uint64_t choose_eager(const struct torus *t, bool damaged, uint64_t parked)
{
    uint32_t times = torus_diameter(t) / 2 + 1, half = (torus_ports(t) + 1) / 2;

    if (damaged) /* all that is exchanged may have to pass one node */
        times = t->nodes;

    times = times > half ? times : half;
    times = times > 2 ? times : 2; /* for the copies */
    uint64_t eager = parked / 4 / times;
    while (eager > 0 && part_wire_bytes(eager) > parked / 4 / times)
        eager -= eager / 1024 + 1;
    return eager < GROUP_EAGER_MOST ? eager : GROUP_EAGER_MOST;
}

struct limits limits_of(const struct torus *whole, const struct torus *t, bool damaged)
{
    struct limits l = {PARKED_MOST, ROUNDS_MOST, 0};

    if (t->dims < whole->dims) {
        uint32_t parts = (1u << whole->dims) - 2;
        l.parked = PARKED_MOST / 2 / parts;
        l.rounds = ROUNDS_MOST / 2 / parts;
    }
    l.eager = choose_eager(t, damaged, l.parked);
    return l;
}

uint64_t group_memory(const struct torus *whole)
{
    const uint64_t most = PARKED_MOST + ROUNDS_MOST;
    const uint64_t undo = ROUNDS_MOST / (2 * whole->dims + 1); /* of a large vector in place */
    const uint64_t own = most + undo + GROUP_COPIES * limits_of(whole, whole, false).eager;

    return whole->dims > 1 ? own + (most + undo) / 2 + PARKED_MOST / 2 * GROUP_COPIES / 8 : own;
}

static void on_planned(void *context)
{
    struct part *p = context;
    p->session->due = p->session->all->due = true;
}

/* Of waves and short vectors. Returns 0, or -1 with *e. */
static int find_tree(struct part *p, struct error *e)
{
    uint32_t root = reduction_root(p->torus);

    if (part_member(p, root) == TORUS_NO_NODE)
        root = p->node[0];
    return p->damaged ? reduction_build_around(&p->tree, &p->damage, root, p->rank, e)
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
        cut_out(p, whole);
        p->rank = rank_in(p, whole, node);
        p->planner = planner_new(p->torus, p->rank, &s->all->workers, on_planned, p);
        if (p->planner == NULL)
            goto no_memory;
    }
    p->agreed = true;
    p->first_eager = limits_of(whole, p->torus, false).eager;
    if (take_damage(p, e) != 0 || number_members(p, e) != 0 || find_tree(p, e) != 0) {
        part_free(p);
        return NULL;
    }
    p->limits = limits_of(whole, p->torus, p->damaged);
    return p;
no_memory:
    part_free(p);
    (void)error_set(e, ERROR_MEMORY, "out of memory for a group");
    return NULL;
}

/* All that goes around what is out of order. */
static void leave_ways(struct part *p)
{
    reduction_free(&p->tree);
    p->tree = (struct reduction_trees){0};
    if (p->has_trees)
        reduction_free(&p->trees);
    p->has_trees = false;
    if (p->detour != NULL)
        planner_leave_detour(p->planner, p->detour);
    p->detour = NULL;
    damage_free(&p->damage);
    p->damage = (struct damage){0};
    p->damaged = false;
}

void part_suspend(struct part *p)
{
    agreement_free(p);
    calls_suspend(p);
    parked_free(p);
    leave_ways(p);
    p->agreed = false;
}

int part_renew(struct part *p, struct error *e)
{
    leave_ways(p); /* of an attempt that came to nothing */
    if (take_damage(p, e) != 0 || find_tree(p, e) != 0)
        return -1;
    p->limits = limits_of(router_torus(p->session->base.set.router), p->torus, p->damaged);
    return 0;
}

void part_free(struct part *p)
{
    agreement_free(p);
    while (p->calls != NULL)
        call_free(p->calls);
    calls_forget(p);
    parked_free(p);
    leave_ways(p);
    free(p->node);
    free(p->member);
    if (p->mask != 0 && p->planner != NULL)
        planner_free(p->planner);
    free(p->place);
    free(p);
}

int part_trees(struct part *p, struct error *e)
{
    int result = !p->has_trees && p->damaged ? part_detour(p, e) : 1;

    if (result <= 0 || p->has_trees)
        return result;
    const struct algorithm *a = p->damaged ? detour_gather(p->detour) : even_algorithm(p->torus);
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
