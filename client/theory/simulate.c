#include "client/theory/simulate.h"

#include <stdlib.h>

#include "daemon/lib/base/grow.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/tally.h"
#include "daemon/lib/schedule/work.h"
#include "proto/text.h"

enum { NONE = UINT32_MAX };

/* The messages in the making. A place is a class of nodes, or a node. */
struct making {
    const struct torus *torus;
    const struct algorithm *algorithm;
    const struct simulation *simulation;
    struct timed *timed;
    uint32_t lanes; /* of a channel */
    uint32_t places;
    uint32_t *representative; /* place -> node */
    uint32_t *place_of;       /* node -> place */
    struct leg *legs;         /* room for a route */
    uint32_t *source;         /* message -> node */
    size_t sources, source_room;
    uint32_t
        *own; /* input buffers, allgather: place * segments + segment -> message before it leaves */
    uint32_t *by_end; /* streaming allgather: (place * N + node) * segments + segment -> message */
    struct tally messages, needs; /* stepped */
};

/* A route of a block from the node that stands for `place`. */
struct route {
    uint32_t place, source, destination, segment, count;
    const struct leg *leg;
};

typedef int visit_fn(struct making *m, const struct route *r);

static void number_places(struct making *m)
{
    const struct torus *t = m->torus;
    uint32_t period[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    if (m->simulation->rates != NULL || m->simulation->each_node || m->lanes > 1)
        torus_no_period(t, period);
    else
        algorithm_period(m->algorithm, t, period);
    for (uint32_t node = 0; node < t->nodes; node++) {
        torus_coordinates(t, node, at);
        for (unsigned i = 0; i < t->dims; i++)
            at[i] %= period[i];
        uint32_t first = torus_rank(t, at);
        if (first == node)
            m->representative[m->places++] = node;
        m->place_of[node] = first == node ? m->places - 1 : m->place_of[first];
    }
}

/* ---- Channels ------------------------------------------------------------------------------------ */

static uint32_t channel_of(const struct making *m, uint32_t node, unsigned port, uint32_t lane)
{
    return (m->place_of[node] * torus_ports(m->torus) + port) * m->lanes + lane;
}

/* The node that stands for the one that a channel leaves, and its port. */
static uint32_t node_of(const struct making *m, uint32_t channel, unsigned *port)
{
    const uint32_t number = channel / m->lanes;

    *port = number % torus_ports(m->torus);
    return m->representative[number / torus_ports(m->torus)];
}

/* Whether a port leads from the last coordinate of a ring to the first one, or back. */
static bool is_dateline(const struct torus *t, uint32_t node, unsigned port)
{
    const unsigned dim = torus_port_dim(t, port);
    uint32_t at[TORUS_MAX_DIMS];

    torus_coordinates(t, node, at);
    return t->wrap[dim] && at[dim] == (torus_port_direction(t, port) > 0 ? t->size[dim] - 1 : 0);
}

/* Switches follow the channels; at input buffers a node has one more, for its own messages. */
static uint32_t switch_of(const struct making *m, uint32_t node, unsigned port)
{
    const uint32_t ports = torus_ports(m->torus);
    const uint32_t each = ports + (m->simulation->place == SIMULATE_AT_INPUT);

    return m->places * ports * m->lanes + m->place_of[node] * each + port;
}

static int add_lanes(struct making *m, uint32_t place, unsigned port)
{
    const struct simulation *s = m->simulation;
    const uint32_t node = m->representative[place];
    const uint32_t to = torus_neighbour(m->torus, node, port);

    for (uint32_t lane = 0; lane < m->lanes; lane++) {
        struct timed_channel c = {
            .from = place,
            .to = to == TORUS_NO_NODE ? place : m->place_of[to],
            .entry = torus_port_opposite(m->torus, port) * m->lanes + lane + 1,
            .switching = s->place == SIMULATE_IN_CHANNEL ? s->switching : 0,
            .unit = s->segment * m->lanes,
        };
        if (s->rates != NULL)
            c.unit = c.unit * DAMAGE_FULL_RATE / damage_rate(s->rates, node, port);
        if (timed_add_channel(m->timed, &c) != 0)
            return -1;
    }
    return 0;
}

static int add_channels(struct making *m)
{
    const struct simulation *s = m->simulation;
    const unsigned ports = torus_ports(m->torus);

    for (uint32_t place = 0; place < m->places; place++)
        for (unsigned port = 0; port < ports; port++)
            if (add_lanes(m, place, port) != 0)
                return -1;
    if (s->place == SIMULATE_IN_CHANNEL)
        return 0;
    const unsigned each = ports + (s->place == SIMULATE_AT_INPUT);
    for (uint32_t i = 0; i < m->places * each; i++) {
        struct timed_channel c = {.from = i / each,
                                  .to = i / each,
                                  .entry = i % each + 1,
                                  .switching = s->switching,
                                  .is_switch = true};
        if (timed_add_channel(m->timed, &c) != 0)
            return -1;
    }
    return 0;
}

/* ---- Messages ------------------------------------------------------------------------------------ */

static int add_message(struct making *m, uint32_t source, const struct timed_message *message)
{
    if (GROW(m->source, m->sources, m->source_room) != 0)
        return -1;
    m->source[m->sources++] = source;
    return timed_add_message(m->timed, message);
}

/* Adds the channels of a leg, and the switches, to the path of the last message. Moves *node to the leg's end. `lane` has
 * the message's lane in each dimension. */
static int add_leg(struct making *m, const struct leg *leg, uint32_t *node,
                   uint32_t lane[TORUS_MAX_DIMS])
{
    const enum simulate_place place = m->simulation->place;
    const unsigned port = torus_port(m->torus, leg->dim, leg->direction);

    for (uint32_t hop = 0; hop < leg->hops; hop++) {
        const uint32_t next = torus_neighbour(m->torus, *node, port);
        if (m->lanes > 1 && is_dateline(m->torus, *node, port))
            lane[leg->dim] = 1;
        if (place == SIMULATE_AT_OUTPUT && timed_add_hop(m->timed, switch_of(m, *node, port)) != 0)
            return -1;
        if (timed_add_hop(m->timed, channel_of(m, *node, port, lane[leg->dim])) != 0)
            return -1;
        if (place == SIMULATE_AT_INPUT &&
            timed_add_hop(m->timed, switch_of(m, next, torus_port_opposite(m->torus, port))) != 0)
            return -1;
        *node = next;
    }
    return 0;
}

static int add_own_switch(struct making *m, uint32_t node)
{
    return m->simulation->place == SIMULATE_AT_INPUT
               ? timed_add_hop(m->timed, switch_of(m, node, torus_ports(m->torus)))
               : 0;
}

/* Calls `visit` with all routes from the nodes that stand for places, by offset, until it returns something else than
 * 0, which is returned. */
static int visit_routes(struct making *m, visit_fn *visit)
{
    const struct torus *t = m->torus;
    uint32_t from[TORUS_MAX_DIMS], at[TORUS_MAX_DIMS];

    for (uint32_t place = 0; place < m->places; place++) {
        const uint32_t source = m->representative[place];
        torus_coordinates(t, source, from);
        for (uint32_t offset = 1; offset < t->nodes; offset++) {
            torus_coordinates(t, offset, at);
            for (unsigned i = 0; i < t->dims; i++)
                at[i] = (at[i] + from[i]) % t->size[i];
            struct route r = {place, source, torus_rank(t, at), 0, 0, m->legs};
            for (; r.segment < m->algorithm->segments; r.segment++) {
                r.count =
                    algorithm_route(m->algorithm, t, source, r.destination, r.segment, m->legs);
                if (r.count > 0 && visit(m, &r) != 0) /* otherwise there is no such block */
                    return -1;
            }
        }
    }
    return 0;
}

/* The node after the first `legs` legs of a route. */
static uint32_t node_after(const struct making *m, const struct route *r, uint32_t legs)
{
    uint32_t node = r->source;

    for (uint32_t i = 0; i < legs; i++)
        node = torus_walk(m->torus, node, r->leg[i].dim, r->leg[i].direction, r->leg[i].hops);
    return node;
}

/* A message has at least so many channels after it. */
static void raise_beyond(struct making *m, uint32_t message, uint32_t hops)
{
    struct timed_message *at = timed_message_at(m->timed, message);

    at->beyond = at->beyond < hops ? hops : at->beyond;
}

/* ---- Streaming ----------------------------------------------------------------------------------- */

static int stream_block(struct making *m, const struct route *r)
{
    const struct timed_message message = {.units = 1, .earliest = m->simulation->timed.startup};
    uint32_t node = r->source, lane[TORUS_MAX_DIMS] = {0};
    int rc = add_message(m, r->source, &message) | add_own_switch(m, node);

    for (uint32_t i = 0; i < r->count && rc == 0; i++)
        rc = add_leg(m, &r->leg[i], &node, lane);
    return rc;
}

static uint32_t *tree_message(const struct making *m, const struct route *r, uint32_t node)
{
    return &m->by_end[((size_t)r->place * m->torus->nodes + node) * m->algorithm->segments +
                      r->segment];
}

/* The message on the last leg of a route. */
static int stream_leg(struct making *m, const struct route *r)
{
    const bool is_root = r->count == 1;
    struct timed_message message = {.units = 1};
    uint32_t node = node_after(m, r, r->count - 1), lane[TORUS_MAX_DIMS] = {0};

    if (is_root && m->own == NULL)
        message.earliest = m->simulation->timed.startup;
    *tree_message(m, r, r->destination) = timed_messages(m->timed);
    if (add_message(m, r->source, &message) != 0)
        return -1;
    if (is_root && m->own != NULL &&
        timed_add_need(m->timed, m->own[r->place * m->algorithm->segments + r->segment],
                       timed_messages(m->timed) - 1) != 0)
        return -1;
    return add_leg(m, &r->leg[r->count - 1], &node, lane);
}

/* What the message on the last leg needs, and what the others have before them. */
static int join_legs(struct making *m, const struct route *r)
{
    uint32_t node = r->source, hops = 0;

    for (uint32_t i = 0; i < r->count; i++)
        hops += r->leg[i].hops;
    for (uint32_t i = 0; i + 1 < r->count; i++) {
        node = torus_walk(m->torus, node, r->leg[i].dim, r->leg[i].direction, r->leg[i].hops);
        hops -= r->leg[i].hops;
        raise_beyond(m, *tree_message(m, r, node), hops);
    }
    return r->count == 1 ? 0
                         : timed_add_need(m->timed, *tree_message(m, r, node),
                                          *tree_message(m, r, r->destination));
}

/* At input buffers: a node's own block is switched once, whatever number of ports sends it. */
static int add_own(struct making *m)
{
    const struct timed_message message = {.earliest = m->simulation->timed.startup};
    const uint32_t segments = m->algorithm->segments;

    if (m->simulation->place != SIMULATE_AT_INPUT)
        return 0;
    m->own = calloc((size_t)m->places * segments, sizeof *m->own);
    if (m->own == NULL)
        return -1;
    for (uint32_t i = 0; i < m->places * segments; i++) {
        const uint32_t node = m->representative[i / segments];
        m->own[i] = timed_messages(m->timed);
        if (add_message(m, node, &message) != 0 || add_own_switch(m, node) != 0)
            return -1;
    }
    return 0;
}

static int make_streaming(struct making *m)
{
    if (m->algorithm->operation == OPERATION_EXCHANGE)
        return visit_routes(m, stream_block);
    m->by_end =
        calloc((size_t)m->places * m->torus->nodes * m->algorithm->segments, sizeof *m->by_end);
    return m->by_end == NULL || add_own(m) != 0 || visit_routes(m, stream_leg) != 0
               ? -1
               : visit_routes(m, join_legs);
}

/* ---- Stepped ------------------------------------------------------------------------------------- */

/* The first leg that no other route has. */
static uint32_t first_new(const struct making *m, const struct route *r)
{
    return m->algorithm->operation == OPERATION_ALLGATHER ? r->count - 1 : 0;
}

static uint64_t key_of(const struct making *m, uint32_t node, const struct leg *leg)
{
    return message_key(m->torus, m->place_of[node], leg);
}

static int count_blocks(struct making *m, const struct route *r)
{
    const uint32_t new = first_new(m, r);
    uint32_t node = node_after(m, r, new);

    for (uint32_t i = new; i < r->count; i++) {
        if (tally_add(&m->messages, key_of(m, node, &r->leg[i])) != 0)
            return -1;
        node = torus_walk(m->torus, node, r->leg[i].dim, r->leg[i].direction, r->leg[i].hops);
    }
    return 0;
}

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static uint32_t find_message(const struct making *m, uint64_t key)
{
    const struct tally_entry *found =
        bsearch(&key, m->messages.at, m->messages.count, sizeof *m->messages.at, compare_keys);

    return (uint32_t)(found - m->messages.at);
}

static int join_steps(struct making *m, const struct route *r)
{
    const uint32_t new = first_new(m, r);
    uint32_t node = r->source, before = NONE, hops = 0;

    for (uint32_t i = 0; i < r->count; i++)
        hops += r->leg[i].hops;
    for (uint32_t i = 0; i < r->count; i++) {
        const uint32_t message = find_message(m, key_of(m, node, &r->leg[i]));
        if (before != NONE &&
            i >= new &&tally_add(&m->needs, (uint64_t)before << 32 | message) != 0)
            return -1;
        node = torus_walk(m->torus, node, r->leg[i].dim, r->leg[i].direction, r->leg[i].hops);
        hops -= r->leg[i].hops;
        raise_beyond(m, message, hops);
        before = message;
    }
    return 0;
}

static int make_stepped(struct making *m)
{
    if (visit_routes(m, count_blocks) != 0 || tally_sort(&m->messages) != 0)
        return -1;
    for (size_t i = 0; i < m->messages.count; i++) {
        const struct tally_entry *entry = &m->messages.at[i];
        const struct leg leg = message_key_leg(m->torus, entry->key);
        const struct timed_message message = {
            .units = (uint32_t)entry->count, .step = leg.step, .pays_startup = true};
        uint32_t node = m->representative[message_key_class(entry->key)];
        uint32_t lane[TORUS_MAX_DIMS] = {0};
        if (add_message(m, node, &message) != 0 || add_leg(m, &leg, &node, lane) != 0)
            return -1;
    }
    if (visit_routes(m, join_steps) != 0 || tally_sort(&m->needs) != 0)
        return -1;
    for (size_t i = 0; i < m->needs.count; i++)
        if (timed_add_need(m->timed, (uint32_t)(m->needs.at[i].key >> 32),
                           (uint32_t)m->needs.at[i].key) != 0)
            return -1;
    return 0;
}

/* ---- The run ------------------------------------------------------------------------------------- */

static int make(struct making *m)
{
    const struct torus *t = m->torus;

    m->representative = calloc(t->nodes, sizeof *m->representative);
    m->place_of = calloc(t->nodes, sizeof *m->place_of);
    m->legs = calloc((size_t)algorithm_max_legs(m->algorithm, t) + 1, sizeof *m->legs);
    if (m->representative == NULL || m->place_of == NULL || m->legs == NULL)
        return -1;
    number_places(m);
    m->timed = timed_new(m->places);
    if (m->timed == NULL || add_channels(m) != 0)
        return -1;
    return m->simulation->streaming ? make_streaming(m) : make_stepped(m);
}

static void release(struct making *m)
{
    timed_free(m->timed);
    free(m->representative);
    free(m->place_of);
    free(m->legs);
    free(m->source);
    free(m->own);
    free(m->by_end);
    tally_free(&m->messages);
    tally_free(&m->needs);
}

static void tell_take(void *context, uint32_t message, uint32_t channel, uint64_t now)
{
    const struct making *m = context;
    unsigned port;

    if (channel >= m->places * torus_ports(m->torus) * m->lanes)
        return;
    const uint32_t node = node_of(m, channel, &port);
    m->simulation->takes(m->simulation->context, m->source[message], node, port, now);
}

/* Where a message waits, for people. */
static struct simulate_wait describe(const struct making *m, const struct timed_wait *w)
{
    uint32_t hops;
    const uint32_t *path = timed_path(m->timed, w->message, &hops);
    struct simulate_wait wait = {
        .source = m->representative[timed_channel_at(m->timed, path[0])->from],
        .destination = m->representative[timed_channel_at(m->timed, path[hops - 1])->to],
        .step = timed_message_at(m->timed, w->message)->step};

    wait.node = node_of(m, w->channel, &wait.port);
    return wait;
}

/* The most units that the lanes of a channel have carried together. */
static uint64_t busiest(const struct making *m)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < m->places * torus_ports(m->torus); i++) {
        uint64_t units = 0;
        for (uint32_t lane = 0; lane < m->lanes; lane++)
            units += timed_carried(m->timed, i * m->lanes + lane);
        most = units > most ? units : most;
    }
    return most;
}

static int simulate(struct making *m, struct simulate_report *r, struct error *e)
{
    const struct simulation *s = m->simulation;
    struct timed_model model = s->timed;

    m->lanes = s->lanes > 1 ? s->lanes : 1;
    model.buffer *= m->lanes;
    model.unit = s->segment * m->lanes;
    *r = (struct simulate_report){0};
    if (make(m) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory to simulate %u %s", m->torus->nodes,
                         text_plural(m->torus->nodes, "node", "nodes"));
    if (timed_run(m->timed, &model, s->takes != NULL ? tell_take : NULL, m, &r->timed, e) != 0)
        return -1;
    r->timed.busiest = busiest(m);
    const uint64_t each = m->torus->nodes / m->places;
    const uint64_t own = m->own != NULL ? (uint64_t)m->places * m->algorithm->segments : 0;
    r->messages = (r->timed.arrived - own) * each;
    r->waited = r->timed.waited * each;
    for (uint32_t i = 0; i < r->timed.circle && i < TIMED_CIRCLE_MOST; i++)
        r->wait[i] = describe(m, &r->timed.wait[i]);
    return 0;
}

static int check(const struct torus *t, const struct algorithm *a, const struct simulation *s,
                 struct error *e)
{
    const double work =
        s->rates != NULL || s->each_node || s->lanes > 1 ? work_of_all(t, a) : work_of(t, a);

    if (algorithm_accepts(a, t, e) != 0 || work_check(t, a, work, SIMULATE_WORK_MOST, e) != 0)
        return -1;
    if (s->timed.startup > SIMULATE_TIME_MOST || s->switching > SIMULATE_TIME_MOST ||
        s->segment > SIMULATE_TIME_MOST)
        return error_set(e, ERROR_REFUSED,
                         "a startup, a switching or a transmission takes more than a second");
    return 0;
}

int simulate_schedule(const struct torus *t, const struct algorithm *a, const struct simulation *s,
                      struct simulate_report *r, struct error *e)
{
    struct simulation each = *s;
    struct making m = {.torus = t, .algorithm = a, .simulation = s};

    if (check(t, a, s, e) != 0)
        return -1;
    int rc = simulate(&m, r, e);
    bool again = rc == 0 && r->timed.circle > 0 && m.places < t->nodes;
    release(&m);
    each.each_node = true; /* to name the nodes */
    if (again && check(t, a, &each, NULL) == 0) {
        m = (struct making){.torus = t, .algorithm = a, .simulation = &each};
        rc = simulate(&m, r, e);
        release(&m);
    }
    return rc;
}

/* ---- In ticks ------------------------------------------------------------------------------------ */

#define TICK UINT64_C(1000000)

int simulate_stream(const struct torus *t, const struct algorithm *a, uint64_t *ticks,
                    struct error *e)
{
    const struct damage *rates = algorithm_damage(a);
    struct simulation s = {.timed = {.queue = TIMED_LONGEST},
                           .streaming = true,
                           .segment = TICK,
                           .rates = rates != NULL && rates->rate != NULL ? rates : NULL};
    struct simulate_report r;

    if (a->operation != OPERATION_EXCHANGE)
        return error_set(e, ERROR_REFUSED, "%s is not an algorithm for exchanges", a->name);
    if (simulate_schedule(t, a, &s, &r, e) != 0)
        return -1;
    *ticks = (r.timed.time + TICK - 1) / TICK;
    return 0;
}

uint64_t simulate_bound(const struct torus *t, const struct algorithm *a)
{
    double blocks = a->detour != NULL ? detour_bound(a->detour) : torus_bound_all_port(t);
    uint64_t bound = (uint64_t)(blocks * a->segments);
    uint32_t diameter = torus_diameter(t);
    return bound > diameter ? bound : diameter;
}
