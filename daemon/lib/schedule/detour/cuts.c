/* Lower bounds, from cuts and from distances. */
#include "daemon/lib/schedule/detour/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/work.h"

#define SEARCHED 64u                   /* best boxes, from which further parts are searched */
#define BOXES_MOST (UINT64_C(1) << 26) /* nodes looked at in all boxes; if more, only slabs */

/* The search for lengths: the longest one; by how much a length grows in the first round, as a logarithm;
 * rounds, and routes in all of them; a part that covers what the sums of lengths lose by rounding. */
#define LENGTH_MOST 0x1p40
#define PACE 2.0
#define ROUNDS_MOST 1024u
#define ROUTES_MOST (UINT64_C(1) << 22)
#define ROUNDED 1e-9

struct cut {
    const struct damage *damage;
    const struct paths *paths;
    uint32_t nodes; /* nodes that are up */
    bool *inside;
    uint32_t inner;   /* nodes inside */
    uint64_t outward; /* rates of the channels from inside to outside, together */
    uint64_t inward;  /* the same in the other direction */
    double best;
};

/* The bound of a cut: what crosses it in each direction takes longest in the slower one. */
static double value(const struct cut *c, uint32_t inner, uint64_t outward, uint64_t inward)
{
    const uint64_t least = outward < inward ? outward : inward;

    return least > 0 ? (double)inner * (c->nodes - inner) * DAMAGE_FULL_RATE / (double)least : 0;
}

/* Sets *from to the rates of the channels from the node to nodes that are inside or, if not `inside`, outside;
 * *to to those of the channels from these nodes to the node. */
static void sum_rates(const struct cut *c, uint32_t node, bool inside, uint64_t *from, uint64_t *to)
{
    const struct torus *t = &c->damage->torus;

    *from = *to = 0;
    for (unsigned port = 0; port < c->paths->ports; port++) {
        uint32_t there = c->paths->neighbour[paths_channel(c->paths, node, port)];
        if (there == TORUS_NO_NODE || c->inside[there] != inside)
            continue;
        *from += damage_rate(c->damage, node, port);
        *to += damage_rate(c->damage, there, torus_port_opposite(t, port));
    }
}

/* Moves nodes to the other part, one at a time, as long as the bound rises. Returns the bound. */
static double climb(struct cut *c)
{
    double now = value(c, c->inner, c->outward, c->inward);
    bool better = true;

    while (better) {
        better = false;
        for (uint32_t node = 0; node < c->damage->torus.nodes; node++) {
            uint64_t to_inside, from_inside, to_outside, from_outside;
            if (c->damage->gone[node])
                continue;
            const bool was = c->inside[node];
            const uint32_t inner = was ? c->inner - 1 : c->inner + 1;
            sum_rates(c, node, true, &to_inside, &from_inside);
            sum_rates(c, node, false, &to_outside, &from_outside);
            const uint64_t outward =
                was ? c->outward + from_inside - to_outside : c->outward + to_outside - from_inside;
            const uint64_t inward =
                was ? c->inward + to_inside - from_outside : c->inward + from_outside - to_inside;
            if (value(c, inner, outward, inward) <= now)
                continue;
            c->inside[node] = !was;
            c->inner = inner;
            c->outward = outward;
            c->inward = inward;
            now = value(c, inner, outward, inward);
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
    c->inner = 0;
    c->outward = c->inward = 0;
    for (uint32_t node = 0; node < t->nodes; node++) {
        bool inside = !c->damage->gone[node];
        torus_coordinates(t, node, at);
        for (unsigned i = 0; i < t->dims; i++)
            inside = inside && (at[i] + t->size[i] - box->from[i]) % t->size[i] < box->length[i];
        c->inside[node] = inside;
        c->inner += inside;
    }
    for (uint32_t node = 0; node < t->nodes; node++)
        if (c->inside[node]) {
            uint64_t from, to;
            sum_rates(c, node, false, &from, &to);
            c->outward += from;
            c->inward += to;
        }
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
        box.value = value(c, c->inner, c->outward, c->inward);
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

/* --- distances --- */

static double rate_of(const struct paths *w, const struct damage *d, size_t channel)
{
    const uint32_t node = (uint32_t)(channel / w->ports);

    return damage_rate(d, node, (unsigned)(channel % w->ports)) / (double)DAMAGE_FULL_RATE;
}

/* The bound that the costs of the channels prove, as lengths. Adds to load[], by channel, the blocks that
 * travel on it if all take shortest paths; `turn` chooses between paths of the same length. */
static double bound_of_lengths(struct paths *w, const struct damage *d, unsigned turn,
                               uint32_t *behind, double *load)
{
    double distances = 0, offered = 0;

    for (size_t i = 0; i < w->channels; i++)
        if (w->neighbour[i] != TORUS_NO_NODE)
            offered += (double)w->cost[i] * rate_of(w, d, i);
    for (uint32_t source = 0; source < w->nodes; source++) {
        if (d->gone[source])
            continue;
        paths_find(w, source, turn + source);
        for (uint32_t i = 0; i < w->reached; i++) {
            distances += (double)w->distance[w->order[i]];
            behind[w->order[i]] = 1;
        }
        for (uint32_t i = w->reached;
             i-- > 1;) { /* the farthest first: from the leaves of the tree */
            const uint32_t node = w->order[i], before = w->before[node];
            load[paths_channel(w, before, w->via[node])] += behind[node];
            behind[before] += behind[node];
        }
    }
    return offered > 0 ? distances / offered : 0;
}

/* Makes the channels longer that carry the most for their rates: exponent[] is the logarithm of the
 * lengths. */
static void lengthen(const struct paths *w, const struct damage *d, double pace, const double *load,
                     double *exponent)
{
    double largest = 0;

    for (size_t i = 0; i < w->channels; i++)
        if (load[i] > largest * rate_of(w, d, i))
            largest = load[i] / rate_of(w, d, i);
    for (size_t i = 0; i < w->channels && largest > 0; i++)
        exponent[i] += pace * load[i] / (rate_of(w, d, i) * largest);
}

static void set_lengths(struct paths *w, const double *exponent)
{
    double largest = 0;

    for (size_t i = 0; i < w->channels; i++)
        largest = exponent[i] > largest ? exponent[i] : largest;
    for (size_t i = 0; i < w->channels; i++)
        w->cost[i] = 1 + (uint64_t)(exp(exponent[i] - largest) * LENGTH_MOST);
}

/* The best bound from lengths of channels, which multiplicative weights find: all blocks take the shortest paths, the
 * busiest channels get longer, and so on. */
static double search_lengths(struct paths *w, const struct damage *d)
{
    const uint64_t work = (uint64_t)w->nodes * w->nodes;
    const unsigned rounds =
        work * ROUNDS_MOST <= ROUTES_MOST ? ROUNDS_MOST : (unsigned)(ROUTES_MOST / work) + 1;
    double *exponent = calloc(w->channels, sizeof *exponent);
    double *load = calloc(w->channels, sizeof *load);
    uint32_t *behind = calloc(w->nodes, sizeof *behind);
    double best = 0;

    for (unsigned i = 0; exponent != NULL && load != NULL && behind != NULL && i < rounds; i++) {
        memset(load, 0, w->channels * sizeof *load);
        set_lengths(w, exponent);
        const double bound = bound_of_lengths(w, d, i, behind, load);
        best = bound > best ? bound : best;
        lengthen(w, d, PACE / sqrt(i + 1.0), load, exponent);
    }
    free(exponent);
    free(load);
    free(behind);
    return best * (1 - ROUNDED);
}

/* The average load if all blocks take shortest paths: the busiest channel carries at least that. */
static double average(struct paths *w, const struct damage *d)
{
    uint64_t hops = 0, channels = 0;

    for (size_t i = 0; i < w->channels; i++) {
        w->cost[i] = 1;
        channels += w->neighbour[i] != TORUS_NO_NODE;
    }
    for (uint32_t source = 0; source < w->nodes; source++) {
        if (d->gone[source])
            continue;
        paths_find(w, source, 0);
        for (uint32_t i = 0; i < w->reached; i++)
            hops += w->distance[w->order[i]];
    }
    return channels > 0 ? (double)hops / (double)channels : 0;
}

double cuts_bound(const struct damage *d)
{
    struct cut c = {.damage = d, .inside = calloc(d->torus.nodes, sizeof *c.inside)};
    struct paths w;

    if (c.inside == NULL || paths_init(&w, d, NULL) != 0) {
        free(c.inside);
        return 0;
    }
    for (uint32_t node = 0; node < d->torus.nodes; node++)
        c.nodes += !d->gone[node];
    c.paths = &w;
    c.best = d->rate == NULL ? average(&w, d) : search_lengths(&w, d);
    if (c.nodes > 1)
        try_all(&c);
    paths_free(&w);
    free(c.inside);
    return c.best;
}
