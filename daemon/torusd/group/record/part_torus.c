#include "daemon/torusd/group/record/part_torus.h"

/* Returns the rank that a node of the whole torus has in the part. */
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

void part_cut_out(struct part *p, const struct torus *whole, uint32_t node)
{
    struct engine_part *place = p->place;
    struct torus *t = &place->torus;

    t->nodes = 1;
    for (unsigned dim = 0; dim < whole->dims; dim++)
        if ((p->mask & 1u << dim) != 0)
            (void)torus_append(t, whole->size[dim], whole->wrap[dim], whole->graph[dim]);
    /* The ports of the part are those of its dimensions, in the same order. */
    for (unsigned port = 0, own = 0; port < torus_ports(whole); port++)
        if ((p->mask & 1u << torus_port_dim(whole, port)) != 0) {
            place->port[own] = (uint8_t)port;
            p->port[port] = (int8_t)own++;
        }
    p->torus = t;
    p->rank = rank_in(p, whole, node);
}

/* Returns the node of the whole torus that has this member number in the part `t` of `node`. */
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

/* --- damage --- */

/* Sets *out to the damage of the whole that concerns the part that `node` is in. Returns 0, or -1 with *e. */
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

int part_check_opening(const struct session *s, uint32_t mask, struct error *e)
{
    const struct torus *whole = router_torus(s->base.set.router);
    struct part part = {.mask = mask};
    struct engine_part place = {0};
    char links[100];

    if (s->shrunk)
        return error_set(e, ERROR_REFUSED,
                         "a group without %s has no parts, because some parts would lack members",
                         damage_describe(&s->damage, links, sizeof links));
    part.place = &place;
    part_cut_out(&part, whole, 0);
    for (uint32_t node = 0; s->damaged && node < whole->nodes; node++) {
        struct damage d;
        struct error why;
        if (node_of(whole, &place.torus, mask, node, 0) != node)
            continue; /* check each part only once */
        if (damage_in(&d, &s->damage, &place, mask, node, e) != 0)
            return -1;
        bool connected = damage_is_connected(&d, &why) == 0;
        damage_free(&d);
        if (!connected)
            return error_set(
                e, why.code,
                "this part cannot be opened: without %s, the part of node %u is not connected",
                damage_describe_links(&s->damage, links, sizeof links), node);
    }
    return 0;
}

int part_take_damage(struct part *p, struct error *e)
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
    p->finds_routes = !damage_is_none(&p->damage) || !torus_is_plain(p->torus);
    return 0;
}
