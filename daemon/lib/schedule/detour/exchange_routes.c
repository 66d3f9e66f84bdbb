#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/detour/internal.h"
#include "proto/text.h"

#define BYTES_MOST (UINT64_C(128) << 20) /* memory for all routes */
/* The room for a route, in hops: SPARE_HOPS more than twice the diameter of the whole torus or, if
 * that is larger, than the diameter of the damaged torus. */
#define SPARE_HOPS 8u

/* Loads are times: a segment loads a channel of the full rate with LOAD_ONE, a slower one with more. */
#define LOAD_ONE 1024u

/* A channel with the largest load, top, costs 2^TOP_BITS; with each unit less, the cost is multiplied by
 * top / (top + steep). A unit is a segment at the full rate or, if slow channels would have very many of them
 * before the search relieves these, 1/UNITS_MOST of the largest load. Every channel costs BASE in addition, so
 * that paths do not grow long where loads do not matter. A slower channel costs as much more as a segment takes
 * longer there. */
#define TOP_BITS 44
#define BASE (UINT64_C(1) << 30)
#define UNITS_MOST 16384u

/* With different rates, small networks may need more segments: each number that has at least 1/FINER_GAIN less load
 * than the fewer ones is taken. */
#define FINER_NODES 16u
#define FINER_SEGMENTS 48u
#define FINER_GAIN 100u
#define BLOCK_TIME (UINT64_C(1) << 20)

#define PASSES_MOST 40u
#define PATIENCE 4u         /* passes after which the search checks its progress */
#define LEAST_PROGRESS 256u /* it stops if it has saved less than 1/256 of the largest load */

/* When one steepness does not help any more, another one often does: first the channels around the
 * busiest ones are relieved, then the busiest ones themselves. Small tori try all values, because
 * they have the fewest paths to choose from and take the least time. */
static const uint32_t steepness[] = {30, 100, 10, 50, 200};
#define STEEPNESSES (sizeof steepness / sizeof steepness[0])

struct search {
    struct paths paths;
    const struct damage *damage;
    struct balance *b;
    uint32_t *load;   /* by channel: segments */
    uint32_t *weight; /* by channel: the load of a segment; NULL: all have LOAD_ONE */
    uint64_t unit;
    uint64_t *price; /* by load in units: what one more segment costs at the full rate */
    uint32_t prices;
    uint8_t *path; /* ports */
};

/* Fewer blocks can have more segments, which even out the loads better. */
static uint32_t choose_segments(uint32_t nodes)
{
    return nodes <= 16 ? 12 : nodes <= 36 ? 8 : nodes <= 128 ? 4 : nodes <= 256 ? 2 : 1;
}

/* --- loads and costs --- */

static uint16_t rate_of(const struct search *s, size_t channel)
{
    return s->damage->rate != NULL ? s->damage->rate[channel] : DAMAGE_FULL_RATE;
}

/* The load of a channel as a time: that of a block at the full rate is BLOCK_TIME. */
static uint64_t time_of(const struct search *s, size_t channel)
{
    return s->load[channel] * DAMAGE_FULL_RATE * BLOCK_TIME / rate_of(s, channel) / s->b->segments;
}

/* What one more segment costs on a channel. The load with that segment counts: on a slow channel one
 * segment may be too many, even if the load is small without it. */
static uint64_t price_of(const struct search *s, size_t channel)
{
    if (s->weight == NULL)
        return s->price[s->load[channel] < s->prices ? s->load[channel] : s->prices - 1];
    const uint64_t weight = s->weight[channel];
    const uint64_t load = ((s->load[channel] + 1) * weight + s->unit - 1) / s->unit - 1;
    const uint64_t price = s->price[load < s->prices ? load : s->prices - 1];

    return weight == LOAD_ONE                            ? price
           : price / LOAD_ONE > PATHS_MOST_COST / weight ? PATHS_MOST_COST
                                                         : price / LOAD_ONE * weight;
}

static uint64_t largest_load(const struct search *s)
{
    uint64_t largest = 0;

    for (size_t i = 0; i < s->paths.channels; i++) {
        const uint64_t load = (uint64_t)s->load[i] * (s->weight != NULL ? s->weight[i] : LOAD_ONE);
        largest = load > largest ? load : largest;
    }
    return largest;
}

/* In segments at the full rate, rounded up. */
static uint64_t largest_segments(const struct search *s)
{
    return (largest_load(s) + LOAD_ONE - 1) / LOAD_ONE;
}

/* Sets the unit for the current loads. Returns the largest load in units, rounded up. */
static uint32_t set_unit(struct search *s)
{
    const uint64_t largest = largest_load(s);

    s->unit = LOAD_ONE;
    if (s->weight != NULL && largest / UNITS_MOST >= LOAD_ONE)
        s->unit = largest / UNITS_MOST + 1;
    return (uint32_t)((largest + s->unit - 1) / s->unit);
}

/* Sets prices and costs for the current loads. Returns 0, or -1 without memory. */
static int set_prices(struct search *s, uint32_t steep)
{
    uint32_t top = set_unit(s) + 1, count = 2 * top + 64;
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
        if (p > PATHS_MOST_COST - BASE)
            p = PATHS_MOST_COST - BASE;
        s->price[load] = p + BASE;
    }
    for (size_t i = 0; i < s->paths.channels; i++)
        s->paths.cost[i] = price_of(s, i);
    return 0;
}

/* Adds `change`, 1 or -1, to the loads along a path. */
static void change_loads(struct search *s, uint32_t source, const uint8_t *path, uint32_t hops,
                         int change)
{
    uint32_t here = source;

    for (uint32_t i = 0; i < hops; i++) {
        size_t channel = paths_channel(&s->paths, here, path[i]);
        s->load[channel] += (uint32_t)change;
        s->paths.cost[channel] = price_of(s, channel);
        here = s->paths.neighbour[channel];
    }
}

static uint64_t cost_of(const struct search *s, uint32_t source, const uint8_t *path, uint32_t hops)
{
    uint32_t here = source;
    uint64_t cost = 0;

    for (uint32_t i = 0; i < hops; i++) {
        size_t channel = paths_channel(&s->paths, here, path[i]);
        cost += s->paths.cost[channel];
        here = s->paths.neighbour[channel];
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
    uint32_t paths = algorithm_stream.segments, here = source;
    uint32_t its = b->segments % paths == 0 ? segment : segment + source + destination;
    uint32_t hops =
        algorithm_stream.route(&s->damage->torus, source, destination, its % paths, legs);

    for (uint32_t i = 0; i < hops; i++) {
        unsigned port = torus_port(&s->damage->torus, legs[i].dim, legs[i].direction);
        b->port[index * b->stride + i] = (uint8_t)port;
        here = s->paths.neighbour[paths_channel(&s->paths, here, port)];
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

/* Finds the cheapest paths from the source or, if `short_ones`, those with the fewest hops, for
 * which there is always room. */
static void find_paths(struct search *s, uint32_t source, bool short_ones)
{
    for (size_t i = 0; short_ones && i < s->paths.channels; i++)
        s->paths.cost[i] = 1;
    paths_find(&s->paths, source, 0);
    for (size_t i = 0; short_ones && i < s->paths.channels; i++)
        s->paths.cost[i] = price_of(s, i);
}

/* Finds a path for this segment of every block of the source that has none. Returns how many are
 * left because their paths are too long for the room. */
static uint32_t find_missing(struct search *s, uint32_t source, uint32_t segment, bool short_ones)
{
    struct balance *b = s->b;
    uint32_t left = 0;
    bool found = false;

    for (uint32_t to = 0; to < b->nodes; to++) {
        size_t index = balance_index(b, source, to, segment);
        uint8_t *path = b->port + index * b->stride;
        if (to == source || s->damage->gone[to] || b->hops[index] > 0)
            continue;
        if (!found)
            find_paths(s, source, short_ones);
        found = true;
        uint32_t hops = paths_trace(&s->paths, to, s->path);
        if (hops > b->stride) {
            left++;
            continue;
        }
        memcpy(path, s->path, hops);
        b->hops[index] = (uint16_t)hops;
        change_loads(s, source, path, hops, 1);
    }
    return left;
}

/* --- improvement --- */

/* Moves a segment to the path in s->path, of `hops` hops, if that saves something. */
static bool improve(struct search *s, uint32_t source, size_t index, uint32_t hops)
{
    struct balance *b = s->b;
    uint8_t *path = b->port + index * b->stride;
    bool saves;

    change_loads(s, source, path, b->hops[index], -1);
    saves = cost_of(s, source, s->path, hops) < cost_of(s, source, path, b->hops[index]);
    if (saves) {
        memcpy(path, s->path, hops);
        b->hops[index] = (uint16_t)hops;
    }
    change_loads(s, source, path, b->hops[index], 1);
    return saves;
}

/* Returns how many segments have been moved. */
static uint32_t improve_source(struct search *s, uint32_t source, unsigned turn)
{
    struct balance *b = s->b;
    uint32_t moved = 0;

    paths_find(&s->paths, source, turn);
    for (uint32_t to = 0; to < b->nodes; to++) {
        uint32_t hops = 0;
        if (to == source || s->damage->gone[to])
            continue;
        for (uint32_t segment = 0; segment < b->segments; segment++) {
            size_t index = balance_index(b, source, to, segment);
            if (cost_of(s, source, balance_ports(b, index), b->hops[index]) <=
                s->paths.distance[to])
                continue;
            if (hops == 0)
                hops = paths_trace(&s->paths, to, s->path);
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
    uint64_t before = UINT64_MAX; /* the largest load PATIENCE passes ago */

    for (unsigned pass = 0; pass < PASSES_MOST; pass++) {
        const uint64_t largest = largest_segments(s);
        uint32_t moved = 0;
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
    for (size_t i = 0; i < s->paths.channels; i++) {
        const double load = (double)s->load[i] * DAMAGE_FULL_RATE / rate_of(s, i);
        b->busiest = load > b->busiest ? load : b->busiest;
    }
    for (size_t i = 0; i < (size_t)b->nodes * b->nodes * b->segments; i++)
        if (b->hops[i] > b->longest)
            b->longest = b->hops[i];
    return 0;
}

/* Sets the stride for paths of up to `hops` hops. Returns 0, or -1 with *e if all routes would take
 * too much memory. */
static int check_room(struct search *s, uint32_t hops, struct error *e)
{
    struct balance *b = s->b;
    uint64_t bytes;

    b->stride = hops + SPARE_HOPS;
    if (b->stride > b->nodes)
        b->stride = b->nodes; /* no path passes a node twice */
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

    /* Check this first: paths_diameter() takes long on a large torus. */
    if (check_room(s, whole, e) != 0)
        return -1;
    left = paths_diameter(&s->paths);
    if (check_room(s, whole > left ? whole : left, e) != 0)
        return -1;
    b->hops = calloc(routes, sizeof *b->hops);
    b->port = malloc(routes * b->stride);
    s->load = calloc(s->paths.channels, sizeof *s->load);
    if (s->damage->rate != NULL)
        s->weight = calloc(s->paths.channels, sizeof *s->weight);
    for (size_t i = 0; s->weight != NULL && i < s->paths.channels; i++)
        s->weight[i] = LOAD_ONE * DAMAGE_FULL_RATE / rate_of(s, i);
    s->path = calloc(t->nodes, sizeof *s->path);
    if (b->hops != NULL && b->port != NULL && s->load != NULL && s->path != NULL &&
        (s->weight != NULL || s->damage->rate == NULL))
        return 0;
    return error_set(e, ERROR_MEMORY, "out of memory for routes between %u %s", t->nodes,
                     text_plural(t->nodes, "node", "nodes"));
}

/* As balance_find(), with that many segments. Sets *time to the load of the busiest channel. */
static int find_in_segments(struct balance *b, const struct damage *d, uint32_t segments,
                            uint64_t *time, struct error *e)
{
    uint32_t nodes = d->torus.nodes;
    struct search s = {.damage = d, .b = b};
    int rc;

    *b = (struct balance){.nodes = nodes, .segments = segments};
    *time = 0;
    if (paths_init(&s.paths, d, e) != 0)
        return -1;
    rc = make_room(&s, e);
    if (rc == 0 && find_routes(&s) != 0)
        rc = error_set(e, ERROR_MEMORY, "out of memory for routes between %u %s", nodes,
                       text_plural(nodes, "node", "nodes"));
    for (size_t i = 0; rc == 0 && i < s.paths.channels; i++)
        if (time_of(&s, i) > *time)
            *time = time_of(&s, i);
    paths_free(&s.paths);
    free(s.load);
    free(s.weight);
    free(s.price);
    free(s.path);
    if (rc != 0)
        balance_free(b);
    return rc;
}

int balance_find(struct balance *b, const struct damage *d, struct error *e)
{
    uint32_t segments = choose_segments(d->torus.nodes);
    uint64_t best, time;

    if (damage_is_connected(d, e) != 0 || find_in_segments(b, d, segments, &best, e) != 0)
        return -1;
    while (d->rate != NULL && d->torus.nodes <= FINER_NODES && 2 * segments <= FINER_SEGMENTS) {
        struct balance finer;
        if (find_in_segments(&finer, d, segments *= 2, &time, e) != 0) {
            balance_free(b);
            return -1;
        }
        if (time + time / FINER_GAIN < best) {
            balance_free(b);
            *b = finer;
            best = time;
        } else {
            balance_free(&finer);
        }
    }
    return 0;
}

void balance_free(struct balance *b)
{
    free(b->hops);
    free(b->port);
    *b = (struct balance){0};
}
