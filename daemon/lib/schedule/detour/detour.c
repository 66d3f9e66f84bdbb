#include "daemon/lib/schedule/detour/detour.h"

#include <stdlib.h>

#include "daemon/lib/schedule/detour/internal.h"
#include "daemon/lib/schedule/predict.h"

_Static_assert(DETOUR_DISJOINT_MOST == PACKING_NODES_MOST, "a set of nodes is a word");

struct detour {
    struct algorithm algorithm, gather, disjoint;
    struct damage damage;
    struct balance balance;
    struct spread spread;
    struct disjoint_trees trees;
    bool reduces_disjoint; /* reductions use the disjoint trees */
    double bound;          /* 0: not computed */
    double equal_bound;    /* the same if all links that are up had the full rate */
    bool counted;
    /* by disjoint, one, streaming: detour_gather_for() */
    struct predict_counts counts[2][2][2];
    unsigned users;
};

static int detour_accepts(const struct algorithm *a, const struct torus *t, struct error *e)
{
    char own[TORUS_TEXT_SIZE], other[TORUS_TEXT_SIZE];
    const struct torus *torus = &a->detour->damage.torus;

    if (torus_equal(torus, t))
        return 0;
    return error_set(e, ERROR_REFUSED, "the routes of this detour are for a torus of %s, not %s",
                     torus_format(torus, own), torus_format(t, other));
}

static bool is_disjoint(const struct algorithm *a)
{
    return a == &a->detour->disjoint;
}

static uint32_t detour_max_legs(const struct algorithm *a, const struct torus *t)
{
    (void)t;
    if (a->operation != OPERATION_ALLGATHER)
        return a->detour->balance.longest;
    return is_disjoint(a) ? a->detour->trees.longest : a->detour->spread.longest;
}

static void detour_period(const struct algorithm *a, const struct torus *t, uint32_t *period)
{
    (void)a;
    torus_no_period(t, period);
}

static uint32_t detour_route(const struct algorithm *a, const struct torus *t, uint32_t source,
                             uint32_t destination, uint32_t segment, struct leg *legs)
{
    const struct detour *d = a->detour;

    if (is_disjoint(a))
        return spread_route_along(disjoint_trees_of(&d->trees, source, segment), t, source,
                                  destination, legs);
    if (a->operation == OPERATION_ALLGATHER)
        return spread_route(&d->spread, &d->damage.torus, source, destination, legs);
    size_t index = balance_index(&d->balance, source, destination, segment);
    const uint8_t *port = balance_ports(&d->balance, index);
    uint32_t hops = d->balance.hops[index];

    for (uint32_t i = 0; i < hops; i++)
        legs[i] = (struct leg){.step = i,
                               .hops = 1,
                               .dim = (uint8_t)torus_port_dim(t, port[i]),
                               .direction = (int8_t)torus_port_direction(t, port[i])};
    return hops;
}

static double detour_algorithm_bound(const struct algorithm *a)
{
    return a->operation == OPERATION_ALLGATHER ? a->detour->trees.bound : detour_bound(a->detour);
}

static const char *detour_bound_name(const struct algorithm *a)
{
    static const char *const names[][2] = {
        {"all-port", "all-to-all broadcast, all-port"},
        {"all-port, at these rates", "all-to-all broadcast, all-port, at these rates"},
        {"all-port, what is in order", "all-to-all broadcast, all-port, what is in order"}};
    const struct damage *d = &a->detour->damage;
    const unsigned which = damage_is_none(d) ? 0 : damage_is_whole(d) ? 1 : 2;

    return names[which][a->operation == OPERATION_ALLGATHER];
}

/* Hops of the longest path of a small block in an exchange, which travels in one piece. */
static uint32_t detour_longest(const struct detour *d)
{
    const struct balance *b = &d->balance;
    uint32_t longest = 0;

    for (uint32_t source = 0; source < b->nodes; source++)
        for (uint32_t destination = 0; destination < b->nodes; destination++) {
            uint32_t hops = b->hops[balance_index(b, source, destination, 0)];
            longest = hops > longest ? hops : longest;
        }
    return longest;
}

static void detour_streamed(const struct algorithm *a, uint32_t *longest, double *blocks)
{
    *longest = detour_longest(a->detour);
    *blocks = detour_busiest(a->detour) / a->segments;
}

static const struct damage *detour_algorithm_damage(const struct algorithm *a)
{
    return &a->detour->damage;
}

static const struct algorithm_methods detour_methods = {
    .streamed = detour_streamed,
    .accepts = detour_accepts,
    .max_legs = detour_max_legs,
    .period = detour_period,
    .route = detour_route,
    .bound = detour_algorithm_bound,
    .bound_name = detour_bound_name,
    .damage = detour_algorithm_damage,
};

/* Vectors go up and down the trees of all nodes, a part of a vector on each tree of the same size. */
static int choose_reductions(struct detour *d, struct error *e)
{
    const uint32_t nodes = d->damage.torus.nodes;
    uint64_t single, disjoint;

    if (d->trees.towards == NULL)
        return 0;
    if (trees_on_a_link(&single, &d->damage, d->spread.towards, nodes, e) != 0 ||
        trees_on_a_link(&disjoint, &d->damage, d->trees.towards, (size_t)nodes * d->trees.trees,
                        e) != 0)
        return -1;
    d->reduces_disjoint = disjoint < single * d->trees.trees;
    return 0;
}

static void describe_gathers(struct detour *d)
{
    bool whole = damage_is_none(&d->damage);

    d->gather = d->algorithm;
    d->gather.summary = "avoids links and nodes that are down, along trees of fewest hops";
    d->gather.transmission = "no formula";
    d->gather.operation = OPERATION_ALLGATHER;
    d->gather.segments = 1;
    if (whole) {
        d->algorithm.name = FOUND_NAME;
        d->algorithm.summary = "balanced routes by single hops, without steps";
        d->gather.name = FOUND_GATHER_NAME;
        d->gather.summary = "along trees of fewest hops";
    }
    d->disjoint = d->gather;
    d->disjoint.name = FOUND_DISJOINT_NAME;
    d->disjoint.summary = "along trees that share no channel, as many as the least cut allows";
    d->disjoint.transmission = "streamed: (N-1)/k for k trees";
    d->disjoint.segments = d->trees.trees;
    if (d->damage.rate != NULL)
        d->disjoint.summary =
            "along trees that share channels as far as their rates allow, as the least cut does";
}

int detour_new(struct detour **out, const struct damage *damage, struct error *e)
{
    struct detour *d = calloc(1, sizeof *d);

    if (d == NULL)
        return error_set(e, ERROR_MEMORY,
                         "out of memory for routes that avoid links that are down");
    if (damage_copy(&d->damage, damage, e) != 0 || balance_find(&d->balance, &d->damage, e) != 0 ||
        spread_find(&d->spread, &d->damage, e) != 0 ||
        disjoint_trees_find(&d->trees, &d->damage, e) != 0 || choose_reductions(d, e) != 0) {
        balance_free(&d->balance);
        spread_free(&d->spread);
        disjoint_trees_free(&d->trees);
        damage_free(&d->damage);
        free(d);
        return -1;
    }
    d->users = 1;
    d->algorithm = (struct algorithm){
        .methods = &detour_methods,
        .detour = d,
        .name = DETOUR_NAME,
        .summary = "avoids links and nodes that are down, by single hops, without steps",
        .accepts_text = "the torus whose damage it is for",
        .startups = "in steps: the longest path; streamed: no steps",
        .transmission = "streamed: close to the lower bound; in steps: no formula",
        .source = "this project",
        .operation = OPERATION_EXCHANGE,
        .port_model = PORT_MODEL_ALL,
        .segments = d->balance.segments,
        .streaming = true,
        .any_graph = true,
    };
    if (damage_is_whole(damage) && !damage_is_none(damage))
        d->algorithm.summary =
            "balanced routes for links of different rates, by single hops, without steps";
    describe_gathers(d);
    *out = d;
    return 0;
}

int detour_new_whole(struct detour **out, const struct torus *t, struct error *e)
{
    struct damage none;
    int result = damage_init(&none, t, e);

    if (result == 0)
        result = detour_new(out, &none, e);
    damage_free(&none);
    if (result == 0)
        detour_find_bound(*out);
    return result;
}

void detour_keep(const struct detour *d)
{
    ((struct detour *)(uintptr_t)d)->users++;
}

void detour_free(const struct detour *shared)
{
    struct detour *d = (struct detour *)(uintptr_t)shared;

    if (d == NULL || --d->users > 0)
        return;
    balance_free(&d->balance);
    spread_free(&d->spread);
    disjoint_trees_free(&d->trees);
    damage_free(&d->damage);
    free(d);
}

const struct algorithm *detour_algorithm(const struct detour *d)
{
    return &d->algorithm;
}

const struct algorithm *detour_gather(const struct detour *d)
{
    return &d->gather;
}

const struct algorithm *detour_disjoint(const struct detour *d)
{
    if (d->trees.towards != NULL)
        return &d->disjoint;
    return d->trees.nodes <= DETOUR_DISJOINT_MOST ? &d->gather : NULL;
}

const struct algorithm *detour_reductions(const struct detour *d)
{
    return d->reduces_disjoint ? &d->disjoint : &d->gather;
}

int detour_count_trees(struct detour *d, struct error *e)
{
    const struct algorithm *const both[] = {&d->gather, &d->disjoint};

    if (d->trees.towards == NULL || d->counted)
        return 0;
    for (unsigned i = 0; i < 8; i++) {
        unsigned which = i / 4, one = i / 2 % 2, streaming = i % 2;
        if (predict_count_gather(&d->damage.torus, both[which], one, streaming,
                                 &d->counts[which][one][streaming], e) != 0)
            return -1;
    }
    d->counted = true;
    return 0;
}

const struct algorithm *detour_gather_for(const struct detour *d, bool one, bool streaming,
                                          const struct predict_costs *costs, uint64_t block_bytes)
{
    if (!d->counted)
        return &d->gather;
    double single = predict_unmeasured_seconds(&d->counts[0][one][streaming], costs, block_bytes);
    double disjoint = predict_unmeasured_seconds(&d->counts[1][one][streaming], costs, block_bytes);
    return disjoint < single ? &d->disjoint : &d->gather;
}

const struct damage *detour_damage(const struct detour *d)
{
    return &d->damage;
}

double detour_busiest(const struct detour *d)
{
    return d->balance.busiest;
}

/* The bound without the rates. Where nothing is down, rings and lines have a formula for it. */
static double equal_links_bound(const struct damage *d)
{
    struct damage equal = *d;

    equal.rate = NULL;
    if (!damage_is_whole(d))
        return cuts_bound(&equal);
    const double formula = torus_bound_all_port(&d->torus);
    const double cuts = d->rate == NULL || !torus_is_plain(&d->torus) ? cuts_bound(&equal) : 0;
    return cuts > formula ? cuts : formula;
}

double detour_exchange_bound(const struct damage *d)
{
    return d->rate == NULL ? equal_links_bound(d) : cuts_bound(d);
}

void detour_find_bound(struct detour *d)
{
    if (d->bound > 0)
        return;
    d->equal_bound = equal_links_bound(&d->damage);
    d->bound = d->damage.rate == NULL ? d->equal_bound : detour_exchange_bound(&d->damage);
}

double detour_equal_bound(const struct detour *d)
{
    return d->equal_bound;
}

double detour_broadcast_bound(const struct detour *d)
{
    return d->trees.least_cut > 0 ? 1 / d->trees.least_cut : 0;
}

double detour_bound(const struct detour *d)
{
    return d->bound;
}
