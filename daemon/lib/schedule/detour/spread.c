#include "daemon/lib/schedule/detour/spread.h"

#include <stdlib.h>

#include "daemon/lib/schedule/tree.h"
#include "proto/text.h"

/* The state of the search for trees. */
struct finder {
    const struct damage *damage;
    uint32_t *load;     /* trees that use a channel, by node * ports + port */
    uint32_t *order;    /* nodes of the tree, by rising hops */
    uint32_t *distance; /* by node: hops; UINT32_MAX: not reached */
};

static size_t channel(const struct finder *f, uint32_t node, unsigned port)
{
    return (size_t)node * torus_ports(&f->damage->torus) + port;
}

/* Fills f->order and f->distance for a source. Returns how many nodes it reaches, itself
 * included. */
static uint32_t reach(struct finder *f, uint32_t source)
{
    const struct torus *t = &f->damage->torus;
    uint32_t known = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        f->distance[node] = UINT32_MAX;
    f->distance[source] = 0;
    f->order[known++] = source;
    for (uint32_t i = 0; i < known; i++)
        for (unsigned port = 0; port < torus_ports(t); port++) {
            uint32_t there = torus_neighbour(t, f->order[i], port);
            if (!damage_has_link(f->damage, f->order[i], port) || f->distance[there] != UINT32_MAX)
                continue;
            f->distance[there] = f->distance[f->order[i]] + 1;
            f->order[known++] = there;
        }
    return known;
}

/* The node's port through which the tree reaches it. */
static uint8_t choose(const struct finder *f, uint32_t node)
{
    const struct torus *t = &f->damage->torus;
    uint32_t least = UINT32_MAX;
    uint8_t best = TREE_NONE;

    for (unsigned port = 0; port < torus_ports(t); port++) {
        if (!damage_has_link(f->damage, node, port))
            continue;
        uint32_t there = torus_neighbour(t, node, port);
        uint32_t load = f->load[channel(f, there, torus_port_opposite(t, port))];
        if (f->distance[there] + 1 == f->distance[node] && load < least) {
            least = load;
            best = (uint8_t)port;
        }
    }
    return best;
}

/* Adds the tree of a source. */
static void grow(struct spread *s, struct finder *f, uint32_t source)
{
    const struct torus *t = &f->damage->torus;
    uint8_t *towards = s->towards + (size_t)source * t->nodes;
    uint32_t known = reach(f, source);

    for (uint32_t i = 1; i < known; i++) {
        uint32_t node = f->order[i];
        unsigned port = towards[node] = choose(f, node);
        f->load[channel(f, torus_neighbour(t, node, port), torus_port_opposite(t, port))]++;
        if (f->distance[node] > s->longest)
            s->longest = f->distance[node];
    }
}

int spread_find(struct spread *s, const struct damage *d, struct error *e)
{
    const struct torus *t = &d->torus;
    struct finder f = {.damage = d,
                       .load = calloc((size_t)t->nodes * torus_ports(t) + 1, sizeof *f.load),
                       .order = calloc(t->nodes, sizeof *f.order),
                       .distance = calloc(t->nodes, sizeof *f.distance)};
    size_t places = (size_t)t->nodes * t->nodes;

    *s = (struct spread){.nodes = t->nodes, .towards = malloc(places)};
    bool enough = f.load != NULL && f.order != NULL && f.distance != NULL && s->towards != NULL;
    for (size_t i = 0; enough && i < places; i++)
        s->towards[i] = TREE_NONE;
    for (uint32_t source = 0; enough && source < t->nodes; source++)
        if (!d->gone[source])
            grow(s, &f, source);
    free(f.load);
    free(f.order);
    free(f.distance);
    if (enough)
        return 0;
    spread_free(s);
    return error_set(e, ERROR_MEMORY, "out of memory for the trees of %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

void spread_free(struct spread *s)
{
    free(s->towards);
    *s = (struct spread){0};
}

uint32_t spread_route_along(const uint8_t *towards, const struct torus *t, uint32_t source,
                            uint32_t destination, struct leg *legs)
{
    uint32_t hops = 0, here = destination;

    if (source == destination || towards[destination] == TREE_NONE)
        return 0;
    for (; here != source; hops++) { /* the last one first */
        unsigned out = torus_port_opposite(t, towards[here]);
        legs[hops] = (struct leg){.hops = 1,
                                  .dim = (uint8_t)torus_port_dim(t, out),
                                  .direction = (int8_t)torus_port_direction(t, out)};
        here = torus_neighbour(t, here, towards[here]);
    }
    for (uint32_t i = 0; i < hops / 2; i++) {
        struct leg leg = legs[i];
        legs[i] = legs[hops - 1 - i];
        legs[hops - 1 - i] = leg;
    }
    for (uint32_t i = 0; i < hops; i++)
        legs[i].step = i;
    return hops;
}

uint32_t spread_route(const struct spread *s, const struct torus *t, uint32_t source,
                      uint32_t destination, struct leg *legs)
{
    return spread_route_along(s->towards + (size_t)source * s->nodes, t, source, destination, legs);
}
