#include "tests/contract/contract.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/damage.h"
#include "tests/support/cmocka.h"

struct torus contract_torus(const char *text)
{
    struct torus t;
    struct error e;
    assert_success(torus_parse(&t, text, &e), e);
    return t;
}

struct torus contract_rectangle(uint32_t rows, uint32_t columns)
{
    return (struct torus){
        .dims = 2, .size = {rows, columns}, .wrap = {true, true}, .nodes = rows * columns};
}

struct schedule_report contract_verify(const struct torus *t, const char *algorithm)
{
    struct schedule_report r;
    struct error e = {.code = ERROR_NONE};
    assert_success(schedule_verify(t, algorithm_find(algorithm), &r, &e), e);
    return r;
}

/* A schedule, counted by following the routes of all pairs. */
struct count {
    const struct torus *torus;
    const struct algorithm *algorithm;
    uint32_t steps;
    uint64_t *load;     /* (step, node, port) -> blocks on the channel */
    uint8_t *message;   /* (step, node, port, hops) -> whether such a message starts there */
    uint32_t *messages; /* (step, node, port) -> messages on the channel */
    uint32_t *starts;   /* (step, node) -> messages that start there */
    uint32_t *ends;     /* (step, node) -> messages that end there */
    uint32_t longest;   /* room for hops in `message` */
    bool minimal;
};

static size_t channel(const struct count *c, uint32_t step, uint32_t node, unsigned port)
{
    return ((size_t)step * c->torus->nodes + node) * torus_ports(c->torus) + port;
}

static void walk(struct count *c, uint32_t source, uint32_t destination, const struct leg *legs,
                 uint32_t count)
{
    const struct torus *t = c->torus;
    uint32_t here = source, hops = 0;

    assert_in_range(count, 1, algorithm_max_legs(c->algorithm, t));
    for (uint32_t i = 0; i < count; i++) {
        const struct leg *leg = &legs[i];
        assert_true(leg->dim < t->dims);
        assert_true(torus_has_direction(t, leg->dim, leg->direction));
        assert_true(leg->hops >= 1 && leg->hops < c->longest);
        assert_true(leg->step < c->steps);
        assert_true(i == 0 || leg->step > leg[-1].step);

        unsigned port = torus_port(t, leg->dim, leg->direction);
        uint8_t *seen = &c->message[channel(c, leg->step, here, port) * c->longest + leg->hops];
        bool first = *seen == 0;
        *seen = 1;
        c->starts[(size_t)leg->step * t->nodes + here] += first;
        for (uint16_t hop = 0; hop < leg->hops; hop++) {
            c->load[channel(c, leg->step, here, port)]++;
            c->messages[channel(c, leg->step, here, port)] += first;
            here = torus_neighbour(t, here, port);
            assert_true(here != TORUS_NO_NODE);
        }
        c->ends[(size_t)leg->step * t->nodes + here] += first;
        hops += leg->hops;
    }
    assert_int_equal(here, destination);
    if (hops != torus_distance(t, source, destination))
        c->minimal = false;
}

/* The time that a channel, by its index, takes for what it carries. */
static double time_of(const struct count *c, size_t index)
{
    const struct damage *d = algorithm_damage(c->algorithm);
    const unsigned ports = torus_ports(c->torus);
    const size_t at = index % ((size_t)c->torus->nodes * ports);
    const double load = (double)c->load[index];

    return d == NULL ? load
                     : load * DAMAGE_FULL_RATE /
                           damage_rate(d, (uint32_t)(at / ports), (unsigned)(at % ports));
}

/* The time at which each channel is free of earlier steps, and begins with the current one; and the times at which
 * each node has sent, and received, all its messages so far. */
struct clock {
    double *free, *begins, *sent, *received;
};

/* Calls fn for each message of a step, with its channels' place in the arrays of the step, its first node and hops. */
static void each_message(const struct count *c, struct clock *k, uint32_t step,
                         void (*fn)(const struct count *c, struct clock *k, uint32_t step,
                                    uint32_t node, unsigned port, uint32_t hops))
{
    for (uint32_t node = 0; node < c->torus->nodes; node++)
        for (unsigned port = 0; port < torus_ports(c->torus); port++)
            for (uint32_t hops = 1; hops < c->longest; hops++)
                if (c->message[channel(c, step, node, port) * c->longest + hops] != 0)
                    fn(c, k, step, node, port, hops);
}

static double later(double a, double b)
{
    return a > b ? a : b;
}

/* verify.h: a message waits for what its node receives, for its channels and, with few ports, for both ends. */
static void begin_message(const struct count *c, struct clock *k, uint32_t step, uint32_t node,
                          unsigned port, uint32_t hops)
{
    const struct torus *t = c->torus;
    double begins = k->received[node];
    uint32_t last = node;

    (void)step;
    for (uint32_t i = 0; i < hops; i++, last = torus_neighbour(t, last, port))
        begins = later(begins, k->free[channel(c, 0, last, port)]);
    if (c->algorithm->port_model == PORT_MODEL_ONE || c->algorithm->ports > 0)
        begins = later(begins, later(k->sent[node], k->received[last]));
    for (uint32_t i = 0; i < hops; i++, node = torus_neighbour(t, node, port)) {
        double *its = &k->begins[channel(c, 0, node, port)];
        *its = later(*its, begins);
    }
}

static void end_message(const struct count *c, struct clock *k, uint32_t step, uint32_t node,
                        unsigned port, uint32_t hops)
{
    uint32_t last = node;
    double ends = 0;

    for (uint32_t i = 0; i < hops; i++, last = torus_neighbour(c->torus, last, port)) {
        size_t its = channel(c, 0, last, port);
        ends = later(ends, k->begins[its] + time_of(c, channel(c, step, last, port)));
    }
    k->sent[node] = later(k->sent[node], ends);
    k->received[last] = later(k->received[last], ends);
}

/* The critical path of verify.h, node by node: no class stands for others. */
static double critical_path(const struct count *c)
{
    size_t channels = channel(c, 1, 0, 0), nodes = c->torus->nodes;
    struct clock k = {calloc(channels + 1, sizeof(double)), calloc(channels + 1, sizeof(double)),
                      calloc(nodes, sizeof(double)), calloc(nodes, sizeof(double))};
    double path = 0;

    assert_true(k.free != NULL && k.begins != NULL && k.sent != NULL && k.received != NULL);
    for (uint32_t step = 0; step < c->steps; step++) {
        memset(k.begins, 0, channels * sizeof(double));
        each_message(c, &k, step, begin_message);
        each_message(c, &k, step, end_message);
        for (size_t i = 0; i < channels; i++)
            if (c->messages[step * channels + i] > 0)
                k.free[i] = k.begins[i] + time_of(c, step * channels + i);
    }
    for (size_t i = 0; i < nodes; i++)
        path = later(path, k.received[i]);
    free(k.free);
    free(k.begins);
    free(k.sent);
    free(k.received);
    return path;
}

static void check_report(const struct count *c)
{
    struct schedule_report r;
    struct error e;
    double transmission = 0;
    uint32_t startups = 0, contended = 0;
    bool one_port_kept = true;

    assert_success(schedule_verify(c->torus, c->algorithm, &r, &e), e);
    for (size_t i = 0; i < (size_t)c->steps * c->torus->nodes; i++)
        one_port_kept &= c->starts[i] <= 1 && c->ends[i] <= 1;
    for (uint32_t step = 0; step < c->steps; step++) {
        double most = 0;
        bool crowded = false;
        for (size_t i = channel(c, step, 0, 0); i < channel(c, step + 1, 0, 0); i++) {
            most = time_of(c, i) > most ? time_of(c, i) : most;
            crowded |= c->messages[i] > 1;
        }
        transmission += most;
        startups += most > 0;
        contended += crowded;
    }
    assert_int_equal(r.startups, startups);
    assert_true(fabs(r.transmission - transmission) <= 1e-9 * transmission);
    assert_int_equal(r.contended_steps, contended);
    assert_int_equal(r.minimal, c->minimal);
    assert_int_equal(r.one_port_kept, one_port_kept);
    assert_true(one_port_kept || c->algorithm->port_model != PORT_MODEL_ONE);
    assert_true(fabs(r.critical_path - critical_path(c)) <= 1e-9 * transmission);
    assert_true(r.critical_path <= r.transmission * (1 + 1e-9));
    assert_true(r.critical_path >= r.bound * (1 - 1e-9));
}

/* The highest step of any route + 1. */
static uint32_t count_steps(const struct torus *t, const struct algorithm *a)
{
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);
    uint32_t steps = 0;

    assert_non_null(legs);
    for (uint32_t s = 0; s < t->nodes; s++) {
        for (uint32_t d = 0; d < t->nodes; d++) {
            for (uint32_t segment = 0; segment < a->segments && s != d; segment++) {
                uint32_t count = algorithm_route(a, t, s, d, segment, legs);
                if (count > 0 && legs[count - 1].step >= steps)
                    steps = legs[count - 1].step + 1;
            }
        }
    }
    free(legs);
    return steps;
}

static void check_delivery(const struct torus *t, const struct algorithm *a)
{
    struct count c = {.torus = t, .algorithm = a, .steps = count_steps(t, a), .minimal = true};
    struct leg *legs = calloc((size_t)algorithm_max_legs(a, t) + 1, sizeof *legs);

    for (unsigned i = 0; i < t->dims; i++)
        c.longest = t->size[i] > c.longest ? t->size[i] : c.longest;
    c.longest++;
    size_t nodes = (size_t)c.steps * t->nodes + 1, channels = nodes * torus_ports(t);
    c.load = calloc(channels, sizeof *c.load);
    c.messages = calloc(channels, sizeof *c.messages);
    c.message = calloc(channels * c.longest, 1);
    c.starts = calloc(nodes, sizeof *c.starts);
    c.ends = calloc(nodes, sizeof *c.ends);
    assert_true(legs && c.load && c.messages && c.message && c.starts && c.ends);

    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++)
            for (uint32_t segment = 0; segment < a->segments && s != d; segment++)
                walk(&c, s, d, legs, algorithm_route(a, t, s, d, segment, legs));
    check_report(&c);
    free(legs);
    free(c.load);
    free(c.messages);
    free(c.message);
    free(c.starts);
    free(c.ends);
}

/* The node reached by moving `by` along `dim`, modulo the size: on a mesh torus_walk() refuses
 * that. */
static uint32_t moved(const struct torus *t, uint32_t node, unsigned dim, uint32_t by)
{
    uint32_t at[TORUS_MAX_DIMS];
    torus_coordinates(t, node, at);
    at[dim] = (at[dim] + by) % t->size[dim];
    return torus_rank(t, at);
}

/* Checks that the route moved along `dim` is the route between the moved ends. `legs` and `other`
 * have room for a route each. */
static void check_same_route(const struct torus *t, const struct algorithm *a, uint32_t source,
                             uint32_t destination, uint32_t segment, unsigned dim, uint32_t by,
                             struct leg *legs, struct leg *other)
{
    uint32_t count = algorithm_route(a, t, source, destination, segment, legs);

    assert_int_equal(count, algorithm_route(a, t, moved(t, source, dim, by),
                                            moved(t, destination, dim, by), segment, other));
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(legs[i].step, other[i].step);
        assert_int_equal(legs[i].hops, other[i].hops);
        assert_int_equal(legs[i].dim, other[i].dim);
        assert_int_equal(legs[i].direction, other[i].direction);
    }
}

void contract_check_period(const struct torus *t, const struct algorithm *a, uint32_t every)
{
    uint32_t period[TORUS_MAX_DIMS];
    size_t room = algorithm_max_legs(a, t) + 1;
    struct leg *legs = calloc(2 * room, sizeof *legs), *other = legs + room;

    assert_non_null(legs);
    algorithm_period(a, t, period);
    for (unsigned dim = 0; dim < t->dims; dim++) {
        assert_in_range(period[dim], 1, t->size[dim]);
        assert_int_equal(t->size[dim] % period[dim], 0);
        if (period[dim] == t->size[dim])
            continue;
        for (uint32_t s = 0; s < t->nodes; s++)
            for (uint32_t d = s % every; d < t->nodes; d += every)
                for (uint32_t segment = 0; segment < a->segments && s != d; segment++)
                    check_same_route(t, a, s, d, segment, dim, period[dim], legs, other);
    }
    free(legs);
}

/* The end of a leg. */
static uint32_t leg_end(const struct torus *t, uint32_t node, const struct leg *leg)
{
    return torus_walk(t, node, leg->dim, leg->direction, leg->hops);
}

/* Checks that flipping one bit of a coordinate of source and destination flips it at both ends of
 * every leg, and that the leg goes the shorter path between them, in its old direction if both are
 * equally long. */
static void check_flipped(const struct torus *t, const struct leg *legs, uint32_t count,
                          uint32_t source, uint32_t flip, const struct leg *other)
{
    uint32_t here = source, there = source ^ flip;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = leg_end(t, here, &legs[i]);
        assert_int_equal(legs[i].step, other[i].step);
        assert_int_equal(legs[i].dim, other[i].dim);
        assert_int_equal(leg_end(t, there, &other[i]), end ^ flip);
        assert_int_equal(torus_distance(t, there, end ^ flip), other[i].hops);
        assert_int_equal(torus_distance(t, here, end), legs[i].hops);
        if (t->wrap[legs[i].dim] && 2u * other[i].hops == t->size[legs[i].dim])
            assert_int_equal(legs[i].direction, other[i].direction);
        here = end;
        there = end ^ flip;
    }
}

static void check_xor_period(const struct torus *t, const struct algorithm *a)
{
    uint32_t period[TORUS_MAX_DIMS], stride = t->nodes;
    size_t room = algorithm_max_legs(a, t) + 1;
    struct leg *legs = calloc(2 * room, sizeof *legs), *other = legs + room;

    assert_non_null(legs);
    a->xor_period(t, period);
    for (unsigned dim = 0; dim < t->dims; dim++) {
        assert_int_equal(period[dim] & (period[dim] - 1), 0);
        assert_int_equal(t->size[dim] & (t->size[dim] - 1), 0);
        stride /= t->size[dim];
        for (uint32_t bit = period[dim]; bit < t->size[dim]; bit *= 2) {
            uint32_t flip = bit * stride;
            for (uint32_t s = 0; s < t->nodes; s++) {
                for (uint32_t d = 0; d < t->nodes; d++) {
                    if (s == d)
                        continue;
                    uint32_t count = algorithm_route(a, t, s, d, 0, legs);
                    assert_int_equal(count, algorithm_route(a, t, s ^ flip, d ^ flip, 0, other));
                    check_flipped(t, legs, count, s, flip, other);
                }
            }
        }
    }
    free(legs);
}

/* Checks the promise of ordered_steps: dimension after dimension, no step beyond the declared
 * one. */
static void check_order(const struct torus *t, const struct algorithm *a)
{
    struct leg *legs = calloc(algorithm_max_legs(a, t) + 1, sizeof *legs);

    assert_non_null(legs);
    assert_int_equal(a->ordered_steps(t), count_steps(t, a));
    for (uint32_t s = 0; s < t->nodes; s++) {
        for (uint32_t d = 0; d < t->nodes; d++) {
            uint32_t count = s == d ? 0 : algorithm_route(a, t, s, d, 0, legs);
            for (uint32_t i = 1; i < count; i++)
                assert_true(legs[i].dim >= legs[i - 1].dim);
        }
    }
    free(legs);
}

void contract_check(const struct torus *t, const struct algorithm *a)
{
    check_delivery(t, a);
    contract_check_period(t, a, 1);
    if (a->xor_period != NULL)
        check_xor_period(t, a);
    if (a->ordered_steps != NULL)
        check_order(t, a);
}

void contract_every_rectangle(const char *name, unsigned expected)
{
    const struct algorithm *a = algorithm_find(name);
    unsigned taken = 0;

    assert_non_null(a);
    for (uint32_t rows = 1; rows <= LARGEST; rows++) {
        for (uint32_t columns = 1; columns <= LARGEST; columns++) {
            struct torus t = contract_rectangle(rows, columns);
            if (algorithm_accepts(a, &t, NULL) == 0) {
                contract_check(&t, a);
                taken++;
            }
        }
    }
    assert_int_equal(taken, expected);
}

void contract_check_no_gaps(const struct torus *t, const char *name)
{
    assert_int_equal(contract_verify(t, name).startups, count_steps(t, algorithm_find(name)));
}

void contract_refused(const char *name, const char *torus)
{
    const struct algorithm *a = algorithm_find(name);
    struct torus t = contract_torus(torus);
    struct error e = {.code = ERROR_NONE};
    struct schedule_report r;

    assert_non_null(a);
    assert_fails(algorithm_accepts(a, &t, &e), e, ERROR_REFUSED, a->name);
    /* A member of a family may be refused because of its degree. */
    assert_true(a->degree > 1 || strstr(e.text, a->accepts_text) != NULL);
    assert_contains(e.text, torus);
    assert_int_equal(algorithm_accepts(a, &t, NULL), -1);
    assert_int_equal(schedule_verify(&t, a, &r, &e), -1);
}
