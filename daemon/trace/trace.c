#include "daemon/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HALF (TRACE_EVENTS / 2)
#define UNIT 1024u /* nanoseconds of a state's unit */
#define SAMPLES 4u /* in an interval, if it is long */

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
    while ((at - t->began) / t->interval >= TRACE_INTERVALS)
        join_intervals(t);
    uint32_t i = (uint32_t)((at - t->began) / t->interval);
    t->intervals = larger(t->intervals, i + 1);
    return i;
}

static uint64_t risen(uint64_t now, uint64_t before)
{
    return now >= before ? now - before : now;
}

/* Adds the time of the last sample's states, to all intervals that it covers. */
static void add_times(struct trace *t, uint64_t from, uint64_t to)
{
    while (from < to) {
        uint32_t i = interval_at(t, from);
        uint64_t end = t->began + (i + UINT64_C(1)) * t->interval, until = end < to ? end : to;
        for (unsigned port = 0; port < t->ports; port++) {
            uint32_t *time = &t->port[(size_t)i * t->ports + port].state[t->last.port[port].state];
            *time = sum(*time, bounded((until - from) / UNIT));
        }
        from = until;
    }
}

void trace_take(struct trace *t, const struct trace_sample *s, uint64_t now)
{
    if (now < t->sampled)
        return;
    if (t->has_last)
        add_times(t, t->sampled, now);
    uint32_t i = interval_at(t, now > t->began ? now - 1 : now);
    for (unsigned port = 0; port < t->ports; port++) {
        struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        if (t->has_last) {
            p->sent += risen(s->port[port].sent, t->last.port[port].sent);
            p->received += risen(s->port[port].received, t->last.port[port].received);
            p->resent =
                sum(p->resent, (uint32_t)risen(s->port[port].resent, t->last.port[port].resent));
        }
        p->queue = larger(p->queue, bounded(s->port[port].queue));
        p->unacked = larger(p->unacked, bounded(s->port[port].unacked));
    }
    if (t->has_last) {
        t->node[i].used = sum(t->node[i].used, bounded(risen(s->used, t->last.used) / UNIT));
        t->node[i].delayed =
            sum(t->node[i].delayed, bounded(risen(s->delayed, t->last.delayed) / UNIT));
    }
    t->node[i].writing = larger(t->node[i].writing, bounded(s->writing));
    t->last = *s;
    t->has_last = true;
    t->sampled = now;
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
    t->event[index] = (struct trace_event){now > t->began ? now - t->began : 0, kind, a, b};
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
