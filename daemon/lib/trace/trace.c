#include "daemon/lib/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/elapsed.h"

#define HALF (TRACE_EVENTS / 2)
#define UNIT 1024u                  /* nanoseconds of a state's unit */
#define SAMPLES 4u                  /* in an interval, if it is long */
#define LAG_LEAST UINT64_C(4000000) /* nanoseconds by which a sample may be late without a reason */

struct trace *trace_new(const char *id, unsigned ports, uint64_t now)
{
    struct trace *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->references = 1;
    t->port = calloc((size_t)TRACE_INTERVALS * ports, sizeof *t->port);
    t->node = calloc(TRACE_INTERVALS, sizeof *t->node);
    if (t->port == NULL || t->node == NULL) {
        trace_unref(t);
        return NULL;
    }
    (void)snprintf(t->id, sizeof t->id, "%s", id);
    t->ports = ports;
    t->began = t->sampled = now;
    t->interval = TRACE_INTERVAL_LEAST;
    return t;
}

struct trace *trace_ref(struct trace *t)
{
    if (t != NULL)
        t->references++;
    return t;
}

void trace_unref(struct trace *t)
{
    if (t == NULL || --t->references > 0)
        return;
    free(t->port);
    free(t->node);
    free(t);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t bounded(uint64_t value)
{
    return value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint32_t sum(uint32_t a, uint32_t b)
{
    return bounded((uint64_t)a + b);
}

static void join_ports(struct trace_port *to, const struct trace_port *one,
                       const struct trace_port *other)
{
    struct trace_port joined = {
        .sent = one->sent + other->sent,
        .received = one->received + other->received,
        .queue = larger(one->queue, other->queue),
        .unacked = larger(one->unacked, other->unacked),
        .resent = sum(one->resent, other->resent),
        .loaded = sum(one->loaded, other->loaded),
        .drained = sum(one->drained, other->drained),
        .no_room = sum(one->no_room, other->no_room),
        .carried = one->carried + other->carried,
    };

    for (unsigned i = 0; i < TRACE_STATES; i++)
        joined.state[i] = sum(one->state[i], other->state[i]);
    *to = joined;
}

/* Makes all intervals twice as long. */
static void join_intervals(struct trace *t)
{
    for (uint32_t i = 0; i < TRACE_INTERVALS / 2; i++) {
        const struct trace_node one = t->node[2 * i], other = t->node[2 * i + 1];
        t->node[i] = (struct trace_node){sum(one.used, other.used), sum(one.delayed, other.delayed),
                                         larger(one.writing, other.writing)};
        for (unsigned port = 0; port < t->ports; port++)
            join_ports(&t->port[(size_t)i * t->ports + port],
                       &t->port[(size_t)2 * i * t->ports + port],
                       &t->port[((size_t)2 * i + 1) * t->ports + port]);
    }
    memset(&t->node[TRACE_INTERVALS / 2], 0, TRACE_INTERVALS / 2 * sizeof *t->node);
    memset(&t->port[(size_t)TRACE_INTERVALS / 2 * t->ports], 0,
           (size_t)TRACE_INTERVALS / 2 * t->ports * sizeof *t->port);
    t->interval *= 2;
    t->intervals = (t->intervals + 1) / 2;
}

/* Returns the interval of a moment, which is then in use. */
static uint32_t interval_at(struct trace *t, uint64_t at)
{
    while (elapsed(t->began, at) / t->interval >= TRACE_INTERVALS)
        join_intervals(t);
    uint32_t i = (uint32_t)(elapsed(t->began, at) / t->interval);
    t->intervals = larger(t->intervals, i + 1);
    return i;
}

static uint64_t risen(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

/* What has happened at the node since the last sample. */
struct change {
    uint64_t used, delayed;
    struct {
        uint64_t sent, received, resent;
    } port[TORUS_MAX_PORTS];
};

/* The time that the main thread neither used nor meant to sleep: a system does not count all of it as delayed. */
static uint64_t lag_of(const struct trace *t, uint64_t used, uint64_t now)
{
    uint64_t passed = elapsed(t->sampled, now);
    uint64_t meant = elapsed(t->sampled, trace_due(t)) + used;

    return !t->paused && passed > meant + LAG_LEAST ? passed - meant : 0;
}

static void find_change(const struct trace *t, const struct trace_sample *s, uint64_t now,
                        struct change *c)
{
    uint64_t lag;

    c->used = risen(s->used, t->last.used);
    c->delayed = risen(s->delayed, t->last.delayed);
    lag = lag_of(t, c->used, now);
    c->delayed = c->delayed > lag ? c->delayed : lag;
    for (unsigned port = 0; port < t->ports; port++) {
        c->port[port].sent = risen(s->port[port].sent, t->last.port[port].sent);
        c->port[port].received = risen(s->port[port].received, t->last.port[port].received);
        c->port[port].resent = risen(s->port[port].resent, t->last.port[port].resent);
    }
}

/* Takes from *left the share of `part` in the `whole` time that is left. */
static uint64_t take_part(uint64_t *left, uint64_t part, uint64_t whole)
{
    uint64_t taken =
        part >= whole ? *left : (uint64_t)((double)*left * (double)part / (double)whole);

    *left -= taken;
    return taken;
}

/* Adds a part of the change to an interval. */
static void add_part(struct trace *t, uint32_t i, struct change *c, uint64_t part, uint64_t whole)
{
    struct trace_node *n = &t->node[i];

    n->used = sum(n->used, bounded(take_part(&c->used, part, whole) / UNIT));
    n->delayed = sum(n->delayed, bounded(take_part(&c->delayed, part, whole) / UNIT));
    for (unsigned port = 0; port < t->ports; port++) {
        struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        uint32_t *time = &p->state[t->last.port[port].state];
        *time = sum(*time, bounded(part / UNIT));
        p->sent += take_part(&c->port[port].sent, part, whole);
        p->received += take_part(&c->port[port].received, part, whole);
        p->resent = sum(p->resent, bounded(take_part(&c->port[port].resent, part, whole)));
    }
}

/* Adds what has happened since the last sample to all intervals that this time covers. */
static void add_change(struct trace *t, struct change *c, uint64_t now)
{
    uint64_t from = t->sampled;

    do {
        uint32_t i = interval_at(t, from);
        uint64_t end = t->began + (i + UINT64_C(1)) * t->interval, until = end < now ? end : now;
        add_part(t, i, c, elapsed(from, until), elapsed(from, now));
        from = until;
    } while (from < now);
}

/* Adds what a span says about a port's link to all intervals that it covers. */
static void add_span(struct trace *t, unsigned port, struct link_load_span *span, uint64_t now)
{
    uint64_t from = span->began > t->began ? span->began : t->began;

    while (from < now) {
        uint32_t i = interval_at(t, from);
        uint64_t end = t->began + (i + UINT64_C(1)) * t->interval, until = end < now ? end : now;
        uint64_t part = elapsed(from, until), whole = elapsed(from, now);
        struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        p->loaded = sum(p->loaded, bounded(take_part(&span->loaded, part, whole) / UNIT));
        p->drained = sum(p->drained, bounded(take_part(&span->drained, part, whole) / UNIT));
        p->no_room = sum(p->no_room, bounded(take_part(&span->no_room, part, whole) / UNIT));
        p->carried += take_part(&span->carried, part, whole);
        from = until;
    }
}

void trace_take(struct trace *t, const struct trace_sample *s, uint64_t now)
{
    struct link_load_span span;
    struct change c;

    if (now < t->sampled)
        return;
    if (t->has_last) {
        find_change(t, s, now, &c);
        add_change(t, &c, now);
    }
    for (unsigned port = 0; port < t->ports; port++)
        if (link_load_take(&t->load[port], &s->port[port].load, now, &span))
            add_span(t, port, &span, now);
    uint32_t i = interval_at(t, now > t->began ? now - 1 : now);
    for (unsigned port = 0; port < t->ports; port++) {
        struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        p->queue = larger(p->queue, bounded(s->port[port].queue));
        p->unacked = larger(p->unacked, bounded(s->port[port].unacked));
    }
    t->node[i].writing = larger(t->node[i].writing, bounded(s->writing));
    t->last = *s;
    t->has_last = true;
    t->paused = false;
    t->sampled = now;
}

void trace_pause(struct trace *t)
{
    t->paused = true;
    for (unsigned port = 0; port < t->ports; port++)
        t->last.port[port].state = TRACE_NOTHING;
    memset(t->load, 0,
           sizeof t->load); /* what a link carries until the next sample is not of this run */
}

uint64_t trace_due(const struct trace *t)
{
    uint64_t pause = t->interval / SAMPLES;

    return t->sampled + (pause > TRACE_INTERVAL_LEAST ? pause : TRACE_INTERVAL_LEAST);
}

void trace_note(struct trace *t, uint64_t now, enum trace_event_kind kind, uint32_t a, uint64_t b)
{
    if (t == NULL)
        return;
    uint64_t index = t->events < TRACE_EVENTS ? t->events : HALF + (t->events - HALF) % HALF;
    t->event[index] = (struct trace_event){elapsed(t->began, now), kind, a, b};
    t->events++;
}

uint32_t trace_kept(const struct trace *t)
{
    return t->events < TRACE_EVENTS ? (uint32_t)t->events : TRACE_EVENTS;
}

const struct trace_event *trace_event_at(const struct trace *t, uint32_t index)
{
    if (t->events <= TRACE_EVENTS || index < HALF)
        return &t->event[index];
    return &t->event[HALF + (t->events + (index - HALF)) % HALF];
}
