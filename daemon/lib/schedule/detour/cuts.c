/* Lower bounds, from cuts and from distances. */
#include "daemon/lib/schedule/detour/internal.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/work.h"

#define SEARCHED 64u                   /* best boxes, from which further parts are searched */
#define BOXES_MOST (UINT64_C(1) << 26) /* nodes looked at in all boxes; if more, only slabs */

struct cut {
    const struct damage *damage;
    const struct ways *ways;
    uint32_t nodes; /* nodes that are in order */
    bool *inside;
    uint32_t inner;   /* nodes inside */
    uint32_t outward; /* channels from inside to outside */
    double best;
};

static double value(const struct cut *c, uint32_t inner, uint32_t outward)
{
    return outward > 0 ? (double)inner * (c->nodes - inner) / outward : 0;
}

/* Channels from the node to nodes that are inside or, if not `inside`, outside. */
static uint32_t count_channels(const struct cut *c, uint32_t node, bool inside)
{
    uint32_t count = 0;

    for (unsigned port = 0; port < c->ways->ports; port++) {
        uint32_t there = c->ways->neighbour[ways_channel(c->ways, node, port)];
        count += there != TORUS_NO_NODE && c->inside[there] == inside;
    }
    return count;
}

/* Moves nodes to the other part, one at a time, as long as the bound rises. Returns the bound. */
static double climb(struct cut *c)
{
    double now = value(c, c->inner, c->outward);
    bool better = true;

    while (better) {
        better = false;
        for (uint32_t node = 0; node < c->damage->torus.nodes; node++) {
            if (c->damage->gone[node])
                continue;
            bool was = c->inside[node];
            uint32_t inner = was ? c->inner - 1 : c->inner + 1;
            uint32_t outward =
                c->outward + count_channels(c, node, was) - count_channels(c, node, !was);
            if (value(c, inner, outward) <= now)
                continue;
            c->inside[node] = !was;
            c->inner = inner;
            c->outward = outward;
            now = value(c, inner, outward);
            better = true;
        }
    }
    return now;
}

struct box {
    uint32_t from[TORUS_MAX_DIMS], length[TORUS_MAX_DIMS];
    double value;
};

static void enter_box(struct cut *c, const struct box *box)
{
    const struct torus *t = &c->damage->torus;
    uint32_t at[TORUS_MAX_DIMS];

    watch_tell(-1);
    c->inner = c->outward = 0;
    for (uint32_t node = 0; node < t->nodes; node++) {
        bool inside = !c->damage->gone[node];
        torus_coordinates(t, node, at);
        for (unsigned i = 0; i < t->dims; i++)
            inside = inside && (at[i] + t->size[i] - box->from[i]) % t->size[i] < box->length[i];
        c->inside[node] = inside;
        c->inner += inside;
    }
    for (uint32_t node = 0; node < t->nodes; node++)
        if (c->inside[node])
            c->outward += count_channels(c, node, false);
}

/* Moves on to the next box. Returns false after the last one. With `slabs`, a box has the whole
 * size in all dimensions except one. */
static bool next_box(const struct torus *t, struct box *box, bool slabs)
{
    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t least = slabs ? t->size[i] : 1;
        if (box->length[i] < t->size[i] && ++box->from[i] < t->size[i])
            return true;
        box->from[i] = 0;
        if (box->length[i] < t->size[i]) {
            box->length[i]++;
            return true;
        }
        box->length[i] = least;
    }
    return false;
}

/* Keeps the best boxes, in order of their values. */
static void remember(struct box *list, unsigned *count, const struct box *box)
{
    unsigned at = *count < SEARCHED ? (*count)++ : SEARCHED - 1;

    if (at == SEARCHED - 1 && list[at].value >= box->value)
        return;
    for (; at > 0 && list[at - 1].value < box->value; at--)
        list[at] = list[at - 1];
    list[at] = *box;
}

static void try_boxes(struct cut *c, struct box box, bool slabs, struct box *list, unsigned *count)
{
    do {
        enter_box(c, &box);
        box.value = value(c, c->inner, c->outward);
        if (box.value > 0)
            remember(list, count, &box);
    } while (next_box(&c->damage->torus, &box, slabs));
}

static void try_all(struct cut *c)
{
    const struct torus *t = &c->damage->torus;
    struct box list[SEARCHED] = {0}, box = {0};
    uint64_t work = t->nodes;
    unsigned count = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        box.length[i] = t->size[i];
        work = work < BOXES_MOST ? work * t->size[i] * t->size[i] : work;
    }
    for (unsigned i = 0; i < t->dims && work > BOXES_MOST; i++) {
        struct box slab = box;
        slab.length[i] = 1;
        try_boxes(c, slab, true, list, &count);
    }
    for (unsigned i = 0; i < t->dims; i++)
        box.length[i] = 1;
    if (work <= BOXES_MOST)
        try_boxes(c, box, false, list, &count);
    for (unsigned i = 0; i < count; i++) {
        enter_box(c, &list[i]);
        double found = climb(c);
        if (found > c->best)
            c->best = found;
    }
}

/* The average load if all blocks take shortest ways: the busiest channel carries at least that. */
static double average(struct ways *w, const struct damage *d)
{
    uint64_t hops = 0, channels = 0;

    for (size_t i = 0; i < w->channels; i++) {
        w->cost[i] = 1;
        channels += w->neighbour[i] != TORUS_NO_NODE;
    }
    for (uint32_t source = 0; source < w->nodes; source++) {
        if (d->gone[source])
            continue;
        ways_find(w, source, 0);
        for (uint32_t i = 0; i < w->reached; i++)
            hops += w->distance[w->order[i]];
    }
    return channels > 0 ? (double)hops / (double)channels : 0;
}

double cuts_bound(const struct damage *d)
{
    struct cut c = {.damage = d, .inside = calloc(d->torus.nodes, sizeof *c.inside)};
    struct ways w;

    if (c.inside == NULL || ways_init(&w, d, NULL) != 0) {
        free(c.inside);
        return 0;
    }
    for (uint32_t node = 0; node < d->torus.nodes; node++)
        c.nodes += !d->gone[node];
    c.ways = &w;
    c.best = average(&w, d);
    if (c.nodes > 1)
        try_all(&c);
    ways_free(&w);
    free(c.inside);
    return c.best;
}
