#include "daemon/schedule/detour/detour.h"

#include <stdlib.h>

#include "daemon/schedule/detour/balance.h"
#include "daemon/schedule/detour/cuts.h"
#include "daemon/schedule/detour/spread.h"

struct detour {
    struct algorithm algorithm, gather;
    struct damage damage;
    struct balance balance;
    struct spread spread;
    double bound; /* 0: not computed */
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

static uint32_t detour_max_legs(const struct algorithm *a, const struct torus *t)
{
    (void)t;
    return a->operation == OPERATION_ALLGATHER ? a->detour->spread.longest
                                               : a->detour->balance.longest;
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

    (void)t;
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
    return detour_bound(a->detour);
}

static const char *detour_bound_name(const struct algorithm *a)
{
    return damage_is_none(&a->detour->damage) ? "all-port" : "all-port, what is in order";
}

static const struct algorithm_methods detour_methods = {
    .accepts = detour_accepts,
    .max_legs = detour_max_legs,
    .period = detour_period,
    .route = detour_route,
    .bound = detour_algorithm_bound,
    .bound_name = detour_bound_name,
};

int detour_new(struct detour **out, const struct damage *damage, struct error *e)
{
    struct detour *d = calloc(1, sizeof *d);

    if (d == NULL)
        return error_set(e, ERROR_MEMORY,
                         "out of memory for routes that avoid links that are down");
    if (damage_copy(&d->damage, damage, e) != 0 || balance_find(&d->balance, damage, e) != 0 ||
        spread_find(&d->spread, damage, e) != 0) {
        balance_free(&d->balance);
        damage_free(&d->damage);
        free(d);
        return -1;
    }
    d->users = 1;
    d->algorithm = (struct algorithm){
        .methods = &detour_methods,
        .detour = d,
        .name = DETOUR_NAME,
        .summary = "avoids links and nodes that are out of order, by single hops, without steps",
        .accepts_text = "the torus whose damage it is for",
        .startups = "in steps: the longest way; streamed: no steps",
        .transmission = "streamed: close to the lower bound; in steps: no formula",
        .source = "this project",
        .operation = OPERATION_EXCHANGE,
        .port_model = PORT_MODEL_ALL,
        .segments = d->balance.segments,
        .streaming = true,
        .any_graph = true,
    };
    d->gather = d->algorithm;
    d->gather.summary = "avoids links and nodes that are out of order, along trees of fewest hops";
    d->gather.transmission = "no formula";
    d->gather.operation = OPERATION_ALLGATHER;
    d->gather.segments = 1;
    if (damage_is_none(damage)) {
        d->algorithm.name = FOUND_NAME;
        d->algorithm.summary = "balanced routes by single hops, without steps";
        d->gather.name = FOUND_GATHER_NAME;
        d->gather.summary = "along trees of fewest hops";
    }
    *out = d;
    return 0;
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

const struct damage *detour_damage(const struct detour *d)
{
    return &d->damage;
}

uint32_t detour_busiest(const struct detour *d)
{
    return d->balance.busiest;
}

void detour_find_bound(struct detour *d)
{
    d->bound = cuts_bound(&d->damage);
    if (damage_is_none(&d->damage) && torus_bound_all_port(&d->damage.torus) > d->bound)
        d->bound = torus_bound_all_port(&d->damage.torus);
}

double detour_bound(const struct detour *d)
{
    return d->bound;
}
