#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/detour/internal.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

/* The cheapest ways from one node to all others over the channels of a damaged torus that are in
 * order. Each channel has a cost. All numbers are integers, so that every node chooses the same of
 * several equally cheap ways. */

#define WAYS_MOST_COST (UINT64_C(1) << 50) /* the highest cost of a channel */

struct ways {
    uint32_t nodes;
    unsigned ports;
    size_t channels;     /* including channels that do not exist */
    uint32_t *neighbour; /* by channel, node * ports + port; TORUS_NO_NODE: no link, or out of
                          * order */
    uint64_t *cost;      /* by channel; filled by the caller */
    /* Results of the last ways_find(), by node: */
    uint64_t *distance; /* cost of its way; UINT64_MAX: not reached */
    uint32_t *before;   /* the node before it on its way; TORUS_NO_NODE at the source */
    uint8_t *via;       /* the port by which the way leaves that node */
    uint32_t *order;    /* the nodes that were reached, nearest first */
    uint32_t reached;
    struct ways_entry *heap;
    uint32_t heaped;
};

/* The index of the channel that leaves a node by a port. */
static inline size_t ways_channel(const struct ways *w, uint32_t node, unsigned port)
{
    return (size_t)node * w->ports + port;
}

#define FAR UINT64_MAX

struct ways_entry {
    uint64_t distance;
    uint32_t node;
};

/* Frees what *w holds, and empties *w. */
static void ways_free(struct ways *w)
{
    free(w->neighbour);
    free(w->cost);
    free(w->distance);
    free(w->before);
    free(w->via);
    free(w->order);
    free(w->heap);
    *w = (struct ways){0};
}

/* Fills *w; the caller sets w->cost before ways_find(). Returns 0 with *w, which the caller frees
 * with ways_free(), or -1 with *e (no memory) and nothing to free. */
static int ways_init(struct ways *w, const struct damage *d, struct error *e)
{
    uint32_t nodes = d->torus.nodes;
    unsigned ports = torus_ports(&d->torus);

    *w = (struct ways){.nodes = nodes, .ports = ports, .channels = (size_t)nodes * ports};
    w->neighbour = calloc(w->channels, sizeof *w->neighbour);
    w->cost = calloc(w->channels, sizeof *w->cost);
    w->distance = calloc(nodes, sizeof *w->distance);
    w->before = calloc(nodes, sizeof *w->before);
    w->via = calloc(nodes, sizeof *w->via);
    w->order = calloc(nodes, sizeof *w->order);
    w->heap = calloc(w->channels + 1, sizeof *w->heap); /* a channel shortens a way once */
    if (w->neighbour == NULL || w->cost == NULL || w->distance == NULL || w->before == NULL ||
        w->via == NULL || w->order == NULL || w->heap == NULL) {
        ways_free(w);
        return error_set(e, ERROR_MEMORY, "out of memory for the ways between %u %s", nodes,
                         text_plural(nodes, "node", "nodes"));
    }
    for (uint32_t node = 0; node < nodes; node++)
        for (unsigned port = 0; port < ports; port++)
            w->neighbour[ways_channel(w, node, port)] = damage_has_link(d, node, port)
                                                            ? torus_neighbour(&d->torus, node, port)
                                                            : TORUS_NO_NODE;
    return 0;
}

static bool comes_first(const struct ways_entry *a, const struct ways_entry *b)
{
    return a->distance < b->distance || (a->distance == b->distance && a->node < b->node);
}

static void push(struct ways *w, struct ways_entry entry)
{
    uint32_t at = w->heaped++;

    while (at > 0 && comes_first(&entry, &w->heap[(at - 1) / 2])) {
        w->heap[at] = w->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    w->heap[at] = entry;
}

static struct ways_entry pop(struct ways *w)
{
    struct ways_entry first = w->heap[0], last = w->heap[--w->heaped];
    uint32_t at = 0;

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= w->heaped)
            break;
        if (child + 1 < w->heaped && comes_first(&w->heap[child + 1], &w->heap[child]))
            child++;
        if (!comes_first(&w->heap[child], &last))
            break;
        w->heap[at] = w->heap[child];
        at = child;
    }
    w->heap[at] = last;
    return first;
}

/* Shortens the ways to the neighbours of a node whose own way is final. */
static void spread(struct ways *w, struct ways_entry from, unsigned turn)
{
    for (unsigned i = 0; i < w->ports; i++) {
        unsigned port = (i + turn) % w->ports;
        size_t channel = ways_channel(w, from.node, port);
        uint32_t there = w->neighbour[channel];
        uint64_t distance = from.distance + w->cost[channel];
        if (there == TORUS_NO_NODE || distance >= w->distance[there])
            continue;
        w->distance[there] = distance;
        w->via[there] = (uint8_t)port;
        w->before[there] = from.node;
        push(w, (struct ways_entry){distance, there});
    }
}

/* Finds the cheapest ways from `source`. Of equally cheap ways it prefers those by the ports from
 * `turn` on, cyclically. */
static void ways_find(struct ways *w, uint32_t source, unsigned turn)
{
    for (uint32_t node = 0; node < w->nodes; node++)
        w->distance[node] = FAR;
    w->distance[source] = 0;
    w->before[source] = TORUS_NO_NODE;
    w->reached = 0;
    w->heaped = 0;
    watch_tell(-1);
    push(w, (struct ways_entry){0, source});
    while (w->heaped > 0) {
        struct ways_entry nearest = pop(w);
        if (nearest.distance > w->distance[nearest.node])
            continue; /* a shorter way was found since */
        w->order[w->reached++] = nearest.node;
        spread(w, nearest, turn);
    }
}

/* Writes the ports of the way to a node that was reached. Returns how many: at most nodes - 1. */
static uint32_t ways_trace(const struct ways *w, uint32_t destination, uint8_t *port)
{
    uint32_t length = 0;

    for (uint32_t at = destination; w->before[at] != TORUS_NO_NODE; at = w->before[at])
        length++;
    uint32_t i = length;
    for (uint32_t at = destination; w->before[at] != TORUS_NO_NODE; at = w->before[at])
        port[--i] = w->via[at];
    return length;
}

/* The most hops of a shortest way between two nodes that can reach each other. Overwrites the
 * costs. */
static uint32_t ways_diameter(struct ways *w)
{
    uint64_t longest = 0;

    for (size_t i = 0; i < w->channels; i++)
        w->cost[i] = 1;
    for (uint32_t source = 0; source < w->nodes; source++) {
        ways_find(w, source, 0);
        uint64_t distance = w->distance[w->order[w->reached - 1]];
        if (distance > longest)
            longest = distance;
    }
    return (uint32_t)longest;
}

#define BYTES_MOST (UINT64_C(128) << 20) /* memory for all routes */
/* The room for a route, in hops: SPARE_HOPS more than twice the diameter of the whole torus or, if
 * that is larger, than the diameter of the damaged torus. */
#define SPARE_HOPS 8u

/* A channel with the largest load, top, costs 2^TOP_BITS; with each segment less, the cost is
 * multiplied by top / (top + steep). Every channel costs BASE in addition, so that ways do not grow
 * long where loads do not matter. */
#define TOP_BITS 44
#define BASE (UINT64_C(1) << 30)

#define PASSES_MOST 40u
#define PATIENCE 4u         /* passes after which the search checks its progress */
#define LEAST_PROGRESS 256u /* it stops if it has saved less than 1/256 of the largest load */

/* When one steepness does not help any more, another one often does: first the channels around the
 * busiest ones are relieved, then the busiest ones themselves. Small tori try all values, because
 * they have the fewest ways to choose from and take the least time. */
static const uint32_t steepness[] = {30, 100, 10, 50, 200};
#define STEEPNESSES (sizeof steepness / sizeof steepness[0])

struct search {
    struct ways ways;
    const struct damage *damage;
    struct balance *b;
    uint32_t *load;  /* by channel: segments */
    uint64_t *price; /* by load: what one more segment costs on a channel */
    uint32_t prices;
    uint8_t *way; /* ports */
};

/* Fewer blocks can have more segments, which even out the loads better. */
static uint32_t choose_segments(uint32_t nodes)
{
    return nodes <= 16 ? 12 : nodes <= 36 ? 8 : nodes <= 128 ? 4 : nodes <= 256 ? 2 : 1;
}

/* --- loads and costs --- */

static uint64_t price_of(const struct search *s, uint32_t load)
{
    return s->price[load < s->prices ? load : s->prices - 1];
}

static uint32_t largest_load(const struct search *s)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < s->ways.channels; i++)
        if (s->load[i] > largest)
            largest = s->load[i];
    return largest;
}

/* Sets prices and costs for the current loads. Returns 0, or -1 without memory. */
static int set_prices(struct search *s, uint32_t steep)
{
    uint32_t top = largest_load(s) + 1, count = 2 * top + 64;
    uint64_t p = UINT64_C(1) << TOP_BITS;

    if (count > s->prices) {
        uint64_t *price = reallocarray(s->price, count, sizeof *price);
        if (price == NULL)
            return -1;
        s->price = price;
        s->prices = count;
    }
    for (uint32_t load = top; load-- > 0;) {
        s->price[load] = p + BASE;
        p = p / (top + steep) * top + p % (top + steep) * top / (top + steep);
    }
    p = UINT64_C(1) << TOP_BITS;
    for (uint32_t load = top; load < s->prices; load++) {
        p += p / top * steep;
        if (p > WAYS_MOST_COST - BASE)
            p = WAYS_MOST_COST - BASE;
        s->price[load] = p + BASE;
    }
    for (size_t i = 0; i < s->ways.channels; i++)
        s->ways.cost[i] = price_of(s, s->load[i]);
    return 0;
}

/* Adds `change`, 1 or -1, to the loads along a way. */
static void change_loads(struct search *s, uint32_t source, const uint8_t *way, uint32_t hops,
                         int change)
{
    uint32_t here = source;

    for (uint32_t i = 0; i < hops; i++) {
        size_t channel = ways_channel(&s->ways, here, way[i]);
        s->load[channel] += (uint32_t)change;
        s->ways.cost[channel] = price_of(s, s->load[channel]);
        here = s->ways.neighbour[channel];
    }
}

static uint64_t cost_of(const struct search *s, uint32_t source, const uint8_t *way, uint32_t hops)
{
    uint32_t here = source;
    uint64_t cost = 0;

    for (uint32_t i = 0; i < hops; i++) {
        size_t channel = ways_channel(&s->ways, here, way[i]);
        cost += s->ways.cost[channel];
        here = s->ways.neighbour[channel];
    }
    return cost;
}

/* --- the first routes --- */

/* Gives a segment the route that `stream` has for it, if all of its links are in order. */
static void begin_with_stream(struct search *s, uint32_t source, uint32_t destination,
                              uint32_t segment, struct leg *legs)
{
    struct balance *b = s->b;
    size_t index = balance_index(b, source, destination, segment);
    uint32_t ways = algorithm_stream.segments, here = source;
    uint32_t its = b->segments % ways == 0 ? segment : segment + source + destination;
    uint32_t hops =
        algorithm_stream.route(&s->damage->torus, source, destination, its % ways, legs);

    for (uint32_t i = 0; i < hops; i++) {
        unsigned port = torus_port(&s->damage->torus, legs[i].dim, legs[i].direction);
        b->port[index * b->stride + i] = (uint8_t)port;
        here = s->ways.neighbour[ways_channel(&s->ways, here, port)];
        if (here == TORUS_NO_NODE)
            return;
    }
    b->hops[index] = (uint16_t)hops;
    change_loads(s, source, balance_ports(b, index), hops, 1);
}

static int begin_all_with_stream(struct search *s)
{
    const struct damage *d = s->damage;
    struct leg *legs = calloc((size_t)torus_diameter(&d->torus) + 1, sizeof *legs);

    if (legs == NULL)
        return -1;
    for (uint32_t source = 0; source < s->b->nodes; source++)
        for (uint32_t to = 0; to < s->b->nodes && !d->gone[source]; to++)
            for (uint32_t i = 0; i < s->b->segments && to != source && !d->gone[to]; i++)
                begin_with_stream(s, source, to, i, legs);
    free(legs);
    return 0;
}

/* Finds the cheapest ways from the source or, if `short_ones`, those with the fewest hops, for
 * which there is always room. */
static void find_ways(struct search *s, uint32_t source, bool short_ones)
{
    for (size_t i = 0; short_ones && i < s->ways.channels; i++)
        s->ways.cost[i] = 1;
    ways_find(&s->ways, source, 0);
    for (size_t i = 0; short_ones && i < s->ways.channels; i++)
        s->ways.cost[i] = price_of(s, s->load[i]);
}

/* Finds a way for this segment of every block of the source that has none. Returns how many are
 * left because their ways are too long for the room. */
static uint32_t find_missing(struct search *s, uint32_t source, uint32_t segment, bool short_ones)
{
    struct balance *b = s->b;
    uint32_t left = 0;
    bool found = false;

    for (uint32_t to = 0; to < b->nodes; to++) {
        size_t index = balance_index(b, source, to, segment);
        uint8_t *way = b->port + index * b->stride;
        if (to == source || s->damage->gone[to] || b->hops[index] > 0)
            continue;
        if (!found)
            find_ways(s, source, short_ones);
        found = true;
        uint32_t hops = ways_trace(&s->ways, to, s->way);
        if (hops > b->stride) {
            left++;
            continue;
        }
        memcpy(way, s->way, hops);
        b->hops[index] = (uint16_t)hops;
        change_loads(s, source, way, hops, 1);
    }
    return left;
}

/* --- improvement --- */

/* Moves a segment to the way in s->way, of `hops` hops, if that saves something. */
static bool improve(struct search *s, uint32_t source, size_t index, uint32_t hops)
{
    struct balance *b = s->b;
    uint8_t *way = b->port + index * b->stride;
    bool saves;

    change_loads(s, source, way, b->hops[index], -1);
    saves = cost_of(s, source, s->way, hops) < cost_of(s, source, way, b->hops[index]);
    if (saves) {
        memcpy(way, s->way, hops);
        b->hops[index] = (uint16_t)hops;
    }
    change_loads(s, source, way, b->hops[index], 1);
    return saves;
}

/* Returns how many segments have been moved. */
static uint32_t improve_source(struct search *s, uint32_t source, unsigned turn)
{
    struct balance *b = s->b;
    uint32_t moved = 0;

    ways_find(&s->ways, source, turn);
    for (uint32_t to = 0; to < b->nodes; to++) {
        uint32_t hops = 0;
        if (to == source || s->damage->gone[to])
            continue;
        for (uint32_t segment = 0; segment < b->segments; segment++) {
            size_t index = balance_index(b, source, to, segment);
            if (cost_of(s, source, balance_ports(b, index), b->hops[index]) <= s->ways.distance[to])
                continue;
            if (hops == 0)
                hops = ways_trace(&s->ways, to, s->way);
            if (hops <= b->stride)
                moved += improve(s, source, index, hops);
        }
    }
    return moved;
}

/* Improves all sources with one steepness as long as that helps. Returns 0, or -1 without
 * memory. */
static int improve_all(struct search *s, uint32_t steep, unsigned turn)
{
    uint32_t before = UINT32_MAX; /* the largest load PATIENCE passes ago */

    for (unsigned pass = 0; pass < PASSES_MOST; pass++) {
        uint32_t moved = 0, largest = largest_load(s);
        if (pass % PATIENCE == 0) {
            if (largest > before - before / LEAST_PROGRESS)
                break;
            before = largest;
        }
        if (set_prices(s, steep) != 0)
            return -1;
        for (uint32_t source = 0; source < s->b->nodes; source++)
            if (!s->damage->gone[source])
                moved += improve_source(s, source, pass + turn);
        if (moved == 0)
            break;
    }
    return 0;
}

/* --- the whole search --- */

static int find_routes(struct search *s)
{
    struct balance *b = s->b;
    unsigned first = b->nodes <= 128 ? 0 : 1;
    unsigned last = b->nodes <= 36 ? STEEPNESSES - 1 : 1;

    if (set_prices(s, steepness[first]) != 0 ||
        (torus_is_plain(&s->damage->torus) && begin_all_with_stream(s) != 0) ||
        set_prices(s, steepness[first]) != 0)
        return -1;
    for (uint32_t source = 0; source < b->nodes; source++)
        for (uint32_t i = 0; i < b->segments && !s->damage->gone[source]; i++)
            if (find_missing(s, source, i, false) > 0)
                (void)find_missing(s, source, i, true);
    for (unsigned i = first; i <= last; i++)
        if (improve_all(s, steepness[i], i) != 0)
            return -1;
    b->busiest = largest_load(s);
    for (size_t i = 0; i < (size_t)b->nodes * b->nodes * b->segments; i++)
        if (b->hops[i] > b->longest)
            b->longest = b->hops[i];
    return 0;
}

/* Sets the stride for ways of up to `hops` hops. Returns 0, or -1 with *e if all routes would take
 * too much memory. */
static int check_room(struct search *s, uint32_t hops, struct error *e)
{
    struct balance *b = s->b;
    uint64_t bytes;

    b->stride = hops + SPARE_HOPS;
    if (b->stride > b->nodes)
        b->stride = b->nodes; /* no way passes a node twice */
    bytes = (uint64_t)b->nodes * b->nodes * b->segments * b->stride;
    if (bytes <= BYTES_MOST)
        return 0;
    if (damage_is_none(s->damage))
        return error_set(e, ERROR_REFUSED,
                         "the routes of stream would take %llu MiB on this network of %u nodes, "
                         "more than the limit of %llu MiB: name another algorithm",
                         (unsigned long long)bytes >> 20, b->nodes,
                         (unsigned long long)(BYTES_MOST >> 20));
    return error_set(
        e, ERROR_REFUSED,
        "routes that avoid links that are down would take %llu MiB on this torus of %u "
        "nodes, more than the limit of %llu MiB: repair the links",
        (unsigned long long)bytes >> 20, b->nodes, (unsigned long long)(BYTES_MOST >> 20));
}

/* Makes room for all routes. Returns 0, or -1 with *e. */
static int make_room(struct search *s, struct error *e)
{
    const struct torus *t = &s->damage->torus;
    struct balance *b = s->b;
    uint32_t whole = 2 * torus_diameter(t), left;
    size_t routes = (size_t)t->nodes * t->nodes * b->segments;

    /* Check this first: ways_diameter() takes long on a large torus. */
    if (check_room(s, whole, e) != 0)
        return -1;
    left = ways_diameter(&s->ways);
    if (check_room(s, whole > left ? whole : left, e) != 0)
        return -1;
    b->hops = calloc(routes, sizeof *b->hops);
    b->port = malloc(routes * b->stride);
    s->load = calloc(s->ways.channels, sizeof *s->load);
    s->way = calloc(t->nodes, sizeof *s->way);
    if (b->hops != NULL && b->port != NULL && s->load != NULL && s->way != NULL)
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for routes between %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

int balance_find(struct balance *b, const struct damage *d, struct error *e)
{
    uint32_t nodes = d->torus.nodes;
    struct search s = {.damage = d, .b = b};
    int rc;

    *b = (struct balance){.nodes = nodes, .segments = choose_segments(nodes)};
    if (damage_is_connected(d, e) != 0 || ways_init(&s.ways, d, e) != 0)
        return -1;
    rc = make_room(&s, e);
    if (rc == 0 && find_routes(&s) != 0)
        rc = error_set(e, ERROR_MEMORY, "out of memory for routes between %u %s", nodes,
                       text_plural(nodes, "node", "nodes"));
    ways_free(&s.ways);
    free(s.load);
    free(s.price);
    free(s.way);
    if (rc != 0)
        balance_free(b);
    return rc;
}

void balance_free(struct balance *b)
{
    free(b->hops);
    free(b->port);
    *b = (struct balance){0};
}

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
