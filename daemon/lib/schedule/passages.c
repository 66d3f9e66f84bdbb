#include "daemon/lib/schedule/passages.h"

#include <stdlib.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/routes.h"
#include "proto/text.h"

struct list {
    struct passage *at;
    uint32_t count;
    size_t room;
};

static int add(struct list *list, const struct passage *passage)
{
    if (GROW(list->at, list->count, list->room) != 0)
        return -1;
    list->at[list->count++] = *passage;
    return 0;
}

/* The state of the search for a node's passages. */
struct draft {
    struct list list;
    struct routes *routes;
    uint32_t rank;
    uint32_t source;            /* the only source whose blocks count; TORUS_NO_NODE: all */
    uint32_t most_ahead;        /* largest `ahead` of any passage of any node */
    const struct damage *rated; /* exchange: the rates of channels; NULL: all are alike */
    uint16_t *beyond; /* allgather, by node: channels from it to the farthest node behind it
                          * in the tree */
};

static int note_moved(struct draft *d, uint32_t here, struct passage passage)
{
    const struct routes *r = d->routes;

    passage.source = routes_move(r, r->source, here, d->rank);
    if (d->source != TORUS_NO_NODE && passage.source != d->source)
        return 0;
    passage.destination = routes_move(r, passage.destination, here, d->rank);
    passage.segment = (uint16_t)r->segment;
    if (d->beyond != NULL) {
        uint32_t segments = r->algorithm->segments;
        passage.segment =
            (uint16_t)((r->segment + segments - passage.source % segments) % segments);
    }
    return add(&d->list, &passage);
}

/* Adds the passage that the current route has at node `here`, moved by the translation that takes
 * `here` to the draft's node. Does nothing if there is no such translation, or if the source that
 * results does not count. The passage's destination is moved as well. Returns 0, or -1 without
 * memory. */
static inline int note(struct draft *d, uint32_t here, const struct passage *passage)
{
    const struct routes *r = d->routes;

    return r->class_of[here] == r->class_of[d->rank] ? note_moved(d, here, *passage) : 0;
}

static uint32_t count_hops(const struct routes *r)
{
    uint32_t hops = 0;

    for (uint32_t i = 0; i < r->legs; i++)
        hops += r->leg[i].hops;
    return hops;
}

/* --- an exchange: each route by itself --- */

/* If rates differ: the time of a segment on a channel of the full rate, and the levels for times that differ by a
 * factor of less than two. */
#define HOP 16u
#define LEVELS 32u

static uint32_t time_on(const struct draft *d, uint32_t node, unsigned port)
{
    if (d->rated == NULL)
        return 1;
    return HOP * DAMAGE_FULL_RATE / damage_rate(d->rated, node, port);
}

static uint32_t time_of_route(const struct draft *d)
{
    const struct routes *r = d->routes;
    uint32_t here = r->source, time = 0;

    if (d->rated == NULL)
        return count_hops(r);
    for (uint32_t i = 0; i < r->legs; i++) {
        unsigned port = torus_port(r->torus, r->leg[i].dim, r->leg[i].direction);
        for (uint16_t hop = 0; hop < r->leg[i].hops; hop++) {
            time += time_on(d, here, port);
            here = routes_neighbour(r, here, port);
        }
    }
    return time;
}

/* Returns passage.ahead for the time on the channels that are left. */
static uint16_t ahead_of(const struct draft *d, uint32_t time)
{
    uint32_t octave = 0;

    if (d->rated == NULL)
        return (uint16_t)time;
    while (time >> octave >= 2 * LEVELS)
        octave++;
    return (uint16_t)(octave * LEVELS + (time >> octave));
}

static int note_route(struct draft *d)
{
    const struct routes *r = d->routes;
    struct passage passage = {.in = PASSAGE_HERE, .destination = r->destination};
    uint32_t here = r->source, left = time_of_route(d);

    if (ahead_of(d, left) > d->most_ahead)
        d->most_ahead = ahead_of(d, left);
    for (uint32_t i = 0; i < r->legs; i++) {
        unsigned port = torus_port(r->torus, r->leg[i].dim, r->leg[i].direction);
        for (uint16_t hop = 0; hop < r->leg[i].hops; hop++) {
            passage.out = (uint8_t)port;
            passage.ahead = ahead_of(d, left);
            left -= time_on(d, here, port);
            if (note(d, here, &passage) != 0)
                return -1;
            here = routes_neighbour(r, here, port);
            passage.in = (uint8_t)torus_port_opposite(r->torus, port);
            passage.hop++;
        }
    }
    passage.ahead = 0;
    passage.out = PASSAGE_HERE;
    return note(d, here, &passage);
}

static int note_routes(struct draft *d)
{
    while (routes_next(d->routes))
        if (note_route(d) != 0)
            return -1;
    return 0;
}

/* --- an allgather: a source's trees --- */

/* Until order_channels() sets it, `place` tells a segment's passages at a node apart: JOINED for
 * the passage that ends there and those that join it, JOINED + 1 inside a leg. */
#define JOINED 0u

/* Whether a translation can make the trees of this class those of the draft's only source. */
static bool is_looked_at(const struct draft *d, uint32_t source_class)
{
    return d->source == TORUS_NO_NODE || d->routes->class_of[d->source] == source_class;
}

/* Fills d->beyond for the tree of a segment. */
static void look_beyond(struct draft *d, uint32_t source_class, uint32_t segment)
{
    struct routes *r = d->routes;

    for (uint32_t node = 0; node < r->torus->nodes; node++)
        d->beyond[node] = 0;
    for (uint32_t node = 0; node < r->torus->nodes; node++) {
        if (node == r->representative[source_class])
            continue;
        routes_seek(r, source_class, node, segment);
        uint32_t here = r->source, left = count_hops(r);
        if (left > d->most_ahead)
            d->most_ahead = left;
        for (uint32_t i = 0; i < r->legs; i++) {
            here = routes_leg_end(r, here, &r->leg[i]);
            left -= r->leg[i].hops;
            if (left > d->beyond[here])
                d->beyond[here] = (uint16_t)left;
        }
    }
}

/* Adds the passages of the current route's last leg. The legs before it are those of another route
 * of the tree. */
static int note_branch(struct draft *d)
{
    const struct routes *r = d->routes;
    const struct leg *last = &r->leg[r->legs - 1];
    unsigned port = torus_port(r->torus, last->dim, last->direction);
    struct passage passage = {.in = PASSAGE_HERE,
                              .out = (uint8_t)port,
                              .destination = r->destination,
                              .hop = (uint16_t)(count_hops(r) - last->hops),
                              .ahead = (uint16_t)(last->hops + d->beyond[r->destination]),
                              .place = JOINED};
    uint32_t here = r->source;

    for (uint32_t i = 0; i + 1 < r->legs; i++) {
        here = routes_leg_end(r, here, &r->leg[i]);
        passage.in = (uint8_t)torus_port_opposite(
            r->torus, torus_port(r->torus, r->leg[i].dim, r->leg[i].direction));
    }
    for (uint16_t hop = 0; hop < last->hops; hop++) {
        if (note(d, here, &passage) != 0)
            return -1;
        here = routes_neighbour(r, here, port);
        passage.in = (uint8_t)torus_port_opposite(r->torus, port);
        passage.place = JOINED + 1;
        passage.hop++;
        passage.ahead--;
    }
    passage.out = PASSAGE_HERE;
    passage.place = JOINED;
    return note(d, here, &passage);
}

static int note_trees(struct draft *d)
{
    struct routes *r = d->routes;

    d->beyond = calloc(r->torus->nodes, sizeof *d->beyond);
    if (d->beyond == NULL)
        return -1;
    for (uint32_t class = 0; class < r->classes; class ++) {
        for (uint32_t segment = 0; segment < r->algorithm->segments; segment++) {
            if (!is_looked_at(d, class))
                continue;
            look_beyond(d, class, segment);
            for (uint32_t node = 0; node < r->torus->nodes; node++) {
                if (node == r->representative[class])
                    continue;
                routes_seek(r, class, node, segment);
                if (r->legs > 0 && note_branch(d) != 0)
                    return -1;
            }
        }
    }
    return 0;
}

/* Sorts the own block first, then by source and segment, the passage that ends here before those
 * that join it. */
static int compare_passages(const void *a, const void *b)
{
    const struct passage *x = a, *y = b;

    if ((x->in == PASSAGE_HERE) != (y->in == PASSAGE_HERE))
        return x->in == PASSAGE_HERE ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->place != y->place)
        return x->place < y->place ? -1 : 1;
    if ((x->out == PASSAGE_HERE) != (y->out == PASSAGE_HERE))
        return x->out == PASSAGE_HERE ? -1 : 1;
    return (x->destination > y->destination) - (x->destination < y->destination);
}

static int join(struct passages *p)
{
    p->joins = calloc((size_t)p->count + 1, sizeof *p->joins);
    if (p->joins == NULL)
        return -1;
    if (p->count > 0)
        qsort(p->passage, p->count, sizeof *p->passage, compare_passages);
    for (uint32_t i = 0; i < p->count; i++) {
        const struct passage *x = &p->passage[i];
        p->own += x->in == PASSAGE_HERE;
        p->joins[i] = i > 0 && x->place == JOINED && x[-1].place == JOINED &&
                      x->source == x[-1].source && x->segment == x[-1].segment;
        /* A segment that is kept and sent on counts once, at the first passage that joins. */
        if (x->in != PASSAGE_HERE)
            p->transit += p->joins[i] ? x[-1].out == PASSAGE_HERE : x->out != PASSAGE_HERE;
    }
    return 0;
}

/* A piece that crosses a channel, for sorting. */
struct crossing {
    uint64_t block;
    uint32_t part; /* segment << 16 | hop: a route may cross a channel twice */
    uint32_t index;
};

static int compare_crossings(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;

    if (x->block != y->block)
        return x->block < y->block ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* Lists the pieces that come in by `port`, or those that leave by it if not `coming`, in the
 * channel's order. Returns how many. */
static uint32_t list_crossings(const struct passages *p, unsigned port, bool coming,
                               struct crossing *crossing)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct passage *x = &p->passage[i];
        if ((coming ? x->in : x->out) != port || (coming && p->joins != NULL && p->joins[i]))
            continue;
        uint32_t number = coming ? x->hop - 1u : x->hop;
        crossing[count++] = (struct crossing){.block = (uint64_t)x->source << 32 | x->destination,
                                              .part = (uint32_t)x->segment << 16 | number,
                                              .index = i};
    }
    qsort(crossing, count, sizeof *crossing, compare_crossings);
    return count;
}

/* Sets the place of each passage at its departure, and the lists of arrivals. Returns 0, or -1
 * without memory. */
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
                   uint32_t rank, uint32_t source, struct error *e)
{
    bool gather = a->operation == OPERATION_ALLGATHER;
    const struct damage *damage = algorithm_damage(a);
    struct routes routes;
    struct draft d = {.routes = &routes,
                      .rank = rank,
                      .source = source,
                      .rated = damage != NULL && damage->rate != NULL ? damage : NULL};

    *p = (struct passages){.rank = rank, .source = source};
    if (rank >= t->nodes)
        return error_set(e, ERROR_USAGE, "there is no node %u: the torus has nodes 0 to %u", rank,
                         t->nodes - 1);
    if (routes_open(&routes, t, a, e) != 0)
        return -1;
    int rc = gather ? note_trees(&d) : note_routes(&d);
    routes_close(&routes);
    free(d.beyond);
    p->most_ahead = d.most_ahead;
    p->count = d.list.count;
    p->passage = d.list.at;
    for (uint32_t i = 0; !gather && i < p->count; i++)
        p->transit += p->passage[i].in != PASSAGE_HERE && p->passage[i].out != PASSAGE_HERE;
    if (rc == 0 && gather)
        rc = join(p);
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
    free(p->joins);
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        free(p->arrival[port]);
    *p = (struct passages){0};
}

/* --- the largest transit of any node --- */

struct transit {
    struct draft draft;
    uint32_t *count;    /* by node; if all sources count, by class, at its representative */
    uint32_t *branched; /* allgather, by node: number of the last tree with a branch there */
    uint32_t trees;
};

/* Counts one segment in transit at the node. */
static void count_one(struct transit *n, uint32_t node)
{
    const struct routes *r = n->draft.routes;

    if (n->draft.source == TORUS_NO_NODE)
        node = r->representative[r->class_of[node]];
    n->count[node]++;
}

/* Counts what is in transit because of the current route's legs from `first` on: at nodes inside
 * the legs and, with `stays_at_ends` (allgather), at the starts of the legs, once for a segment
 * that leaves by several ports; without it, between two legs. */
static void count_legs(struct transit *n, uint32_t first, bool stays_at_ends)
{
    const struct routes *r = n->draft.routes;
    uint32_t here = r->source;

    for (uint32_t i = 0; i < first; i++)
        here = routes_leg_end(r, here, &r->leg[i]);
    for (uint32_t i = first; i < r->legs; i++) {
        unsigned port = torus_port(r->torus, r->leg[i].dim, r->leg[i].direction);
        if (stays_at_ends && here != r->source && n->branched[here] != n->trees) {
            n->branched[here] = n->trees;
            count_one(n, here);
        }
        for (uint16_t left = r->leg[i].hops; left-- > 0;) {
            here = routes_neighbour(r, here, port);
            if (left > 0 || (!stays_at_ends && i + 1 < r->legs))
                count_one(n, here);
        }
    }
}

static void count_trees(struct transit *n)
{
    struct routes *r = n->draft.routes;

    for (uint32_t class = 0; class < r->classes; class ++) {
        for (uint32_t segment = 0; segment < r->algorithm->segments; segment++) {
            if (!is_looked_at(&n->draft, class))
                continue;
            n->trees++;
            for (uint32_t node = 0; node < r->torus->nodes; node++) {
                if (node == r->representative[class])
                    continue;
                routes_seek(r, class, node, segment);
                if (r->legs > 0) /* otherwise the source or the node is down */
                    count_legs(n, r->legs - 1, true);
            }
        }
    }
}

int passages_most_transit(const struct torus *t, const struct algorithm *a, uint32_t source,
                          uint32_t *most, struct error *e)
{
    struct routes r;
    struct transit n = {.draft = {.routes = &r, .source = source}};
    int rc = -1;

    *most = 0;
    if (routes_open(&r, t, a, e) != 0)
        return -1;
    n.count = calloc(t->nodes, sizeof *n.count);
    n.branched = calloc(t->nodes, sizeof *n.branched);
    if (n.count != NULL && n.branched != NULL) {
        if (a->operation == OPERATION_ALLGATHER)
            count_trees(&n);
        while (a->operation != OPERATION_ALLGATHER && routes_next(&r))
            count_legs(&n, 0, false);
        for (uint32_t node = 0; node < t->nodes; node++)
            if (n.count[node] > *most)
                *most = n.count[node];
        rc = 0;
    }
    free(n.count);
    free(n.branched);
    routes_close(&r);
    return rc == 0 ? 0
                   : error_set(e, ERROR_MEMORY, "out of memory for the passages of %u %s", t->nodes,
                               text_plural(t->nodes, "node", "nodes"));
}
