#include "daemon/schedule/passages.h"

#include <stdlib.h>

#include "daemon/schedule/routes.h"

struct list {
    struct passage *at;
    uint32_t count, room;
};

static int add(struct list *list, const struct passage *passage)
{
    if (list->count == list->room) {
        uint32_t room = list->room == 0 ? 256 : 2 * list->room;
        struct passage *at = reallocarray(list->at, room, sizeof *at);
        if (at == NULL)
            return -1;
        list->at = at;
        list->room = room;
    }
    list->at[list->count++] = *passage;
    return 0;
}

/* The current route as seen from its node `here`, after the translation that takes `here` to
 * `rank`, if that is allowed. */
static int note(struct list *list, const struct routes *r, uint32_t rank, uint32_t here,
                struct passage passage)
{
    if (r->class_of[here] != r->class_of[rank])
        return 0;
    passage.source = routes_move(r, r->source, here, rank);
    passage.destination = routes_move(r, r->destination, here, rank);
    passage.segment = (uint16_t)r->segment;
    return add(list, &passage);
}

static int note_route(struct list *list, const struct routes *r, uint32_t rank, uint32_t *most)
{
    struct passage passage = {.in = PASSAGE_HERE};
    uint32_t here = r->source;

    for (uint32_t i = 0; i < r->legs; i++)
        passage.ahead = (uint16_t)(passage.ahead + r->leg[i].hops);
    if (passage.ahead > *most)
        *most = passage.ahead;
    for (uint32_t i = 0; i < r->legs; i++) {
        unsigned port = torus_port(r->leg[i].dim, r->leg[i].direction);
        for (uint16_t hop = 0; hop < r->leg[i].hops; hop++) {
            passage.out = (uint8_t)port;
            if (note(list, r, rank, here, passage) != 0)
                return -1;
            here = routes_neighbour(r, here, port);
            passage.in = (uint8_t)torus_port_opposite(port);
            passage.hop++;
            passage.ahead--;
        }
    }
    passage.out = PASSAGE_HERE;
    return note(list, r, rank, here, passage);
}

/* What crosses a channel, to be put in the order that both of its ends know. */
struct crossing {
    uint64_t block;
    uint32_t part; /* segment, and the crossing's number in the route, which may come twice */
    uint32_t index;
};

static int compare_crossings(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* Lists what comes in, or else leaves, by `port`, in order. Returns how many. */
static uint32_t list_crossings(const struct passages *p, unsigned port, bool coming,
                               struct crossing *crossing)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct passage *x = &p->passage[i];
        if ((coming ? x->in : x->out) != port)
            continue;
        uint32_t number = coming ? x->hop - 1u : x->hop;
        crossing[count++] = (struct crossing){.block = (uint64_t)x->source << 32 | x->destination,
                                              .part = (uint32_t)x->segment << 16 | number,
                                              .index = i};
    }
    qsort(crossing, count, sizeof *crossing, compare_crossings);
    return count;
}

static int order_channels(struct passages *p, unsigned ports)
{
    struct crossing *crossing = calloc((size_t)p->count + 1, sizeof *crossing);
    int rc = crossing != NULL ? 0 : -1;

    for (unsigned port = 0; port < ports && rc == 0; port++) {
        uint32_t count = p->departures[port] = list_crossings(p, port, false, crossing);
        for (uint32_t i = 0; i < count; i++)
            p->passage[crossing[i].index].place = i;
        count = p->arrivals[port] = list_crossings(p, port, true, crossing);
        p->arrival[port] = calloc((size_t)count + 1, sizeof *p->arrival[port]);
        if (p->arrival[port] == NULL)
            rc = -1;
        for (uint32_t i = 0; i < count && rc == 0; i++)
            p->arrival[port][i] = crossing[i].index;
    }
    free(crossing);
    return rc;
}

int passages_build(struct passages *p, const struct torus *t, const struct algorithm *a,
                   uint32_t rank, struct error *e)
{
    struct routes routes;
    struct list list = {0};
    int rc = 0;

    *p = (struct passages){.rank = rank};
    if (rank >= t->nodes)
        return error_set(e, ERROR_USAGE, "there is no node %u among %u", rank, t->nodes);
    if (a->operation != OPERATION_EXCHANGE)
        return error_set(e, ERROR_USAGE, "%s is not an algorithm for an exchange", a->name);
    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    while (rc == 0 && routes_next(&routes))
        rc = note_route(&list, &routes, rank, &p->most_ahead);
    routes_close(&routes);
    p->count = list.count;
    p->passage = list.at;
    for (uint32_t i = 0; i < p->count; i++)
        p->transit += p->passage[i].in != PASSAGE_HERE && p->passage[i].out != PASSAGE_HERE;
    if (rc == 0)
        rc = order_channels(p, torus_ports(t));
    if (rc != 0) {
        passages_free(p);
        return error_set(e, ERROR_MEMORY, "out of memory for the passages of node %u", rank);
    }
    return 0;
}

void passages_free(struct passages *p)
{
    free(p->passage);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        free(p->arrival[port]);
    *p = (struct passages){0};
}

int passages_most_transit(const struct torus *t, const struct algorithm *a, uint32_t *most,
                          struct error *e)
{
    struct routes r;

    *most = 0;
    if (routes_open(&r, t, a, e) != 0)
        return -1;
    uint32_t *transit = calloc(r.classes, sizeof *transit);
    if (transit == NULL) {
        routes_close(&r);
        return error_set(e, ERROR_MEMORY, "out of memory for the passages of %u nodes", t->nodes);
    }
    while (routes_next(&r)) {
        uint32_t here = r.source;
        for (uint32_t i = 0; i < r.legs; i++) {
            unsigned port = torus_port(r.leg[i].dim, r.leg[i].direction);
            for (uint16_t left = r.leg[i].hops; left-- > 0;) {
                here = routes_neighbour(&r, here, port);
                transit[r.class_of[here]] += left > 0 || i + 1 < r.legs;
            }
        }
    }
    for (uint32_t i = 0; i < r.classes; i++)
        if (transit[i] > *most)
            *most = transit[i];
    free(transit);
    routes_close(&r);
    return 0;
}
