#include "daemon/lib/schedule/algorithms/product_legs.h"

#include "daemon/lib/schedule/message_key.h"

bool product_legs_fit(const struct torus *t, enum product_algorithm a)
{
    struct product p = product_of_torus(t);

    return product_has_exchange(&p) && product_steps(&p, a) <= MESSAGE_MAX_STEP + 1;
}

/* Writes the legs of a walk in a graph. */
static void graph_legs(const struct graph *g, const struct product_walk *w, struct leg *legs)
{
    uint32_t node = w->from;

    for (uint32_t hop = 0; hop < w->walk.hops; hop++) {
        const struct graph_hop *path = w->walk.path;
        unsigned direction = path != NULL ? path[hop].direction : graph_towards(g, node, w->to);
        legs[hop] = (struct leg){.step = w->walk.step + (path != NULL ? path[hop].step : hop),
                                 .hops = 1,
                                 .dim = (uint8_t)w->dim,
                                 .direction = (int8_t)(direction + 1)};
        node = graph_neighbour(g, node, direction);
    }
}

uint32_t product_legs(const struct torus *t, enum product_algorithm a, uint32_t source,
                      uint32_t destination, struct leg *legs)
{
    struct product p = product_of_torus(t);
    struct product_walk walks[PRODUCT_MAX_DIMS];
    unsigned count = product_route(&p, a, source, destination, walks);
    uint32_t hops = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct walk *walk = &walks[i].walk;
        if (p.factor[walks[i].dim].kind == FACTOR_GRAPH) {
            graph_legs(t->graph[walks[i].dim], &walks[i], &legs[hops]);
            hops += walk->hops;
            continue;
        }
        for (uint32_t hop = 0; hop < walk->hops; hop++)
            legs[hops++] = (struct leg){.step = walk->step + hop,
                                        .hops = 1,
                                        .dim = (uint8_t)walks[i].dim,
                                        .direction = (int8_t)walk->stride};
    }
    return hops;
}

uint32_t product_legs_most(const struct torus *t)
{
    struct product p = product_of_torus(t);
    return product_diameter(&p);
}
