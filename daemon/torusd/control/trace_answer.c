#include "daemon/torusd/control/trace_answer.h"

#include <stdlib.h>

#include "daemon/torusd/exchange/exchange.h"
#include "daemon/torusd/group/operations/operations.h"
#include "daemon/torusd/router/port.h"
#include "daemon/torusd/router/router.h"

#define CALLS (GROUP_LEAVE + 1u)
#define UNIT 1024u /* nanoseconds of trace_port.state */
#define WIDE 3u    /* numbers of 64 bits by interval and port */
#define LOADS 3u   /* parts of an interval by port, beside the states */

/* The message and everything that it refers to, in one allocation. */
struct holder {
    Control__Trace message;
    uint64_t *wide;   /* sent, received, carried, event times and values */
    uint32_t *narrow; /* all other arrays */
    uint8_t *shares;  /* of states, and of loads: loaded, drained, no_room */
    int64_t ahead[TORUS_MAX_PORTS];
    uint64_t error[TORUS_MAX_PORTS];
    uint32_t neighbour[TORUS_MAX_PORTS];
    char *phase[EXCHANGE_STATES], *call[CALLS];
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Joins `stride` intervals of a port, from number `first` on. */
static struct trace_port joined_port(const struct trace *t, uint32_t first, uint32_t stride,
                                     unsigned port)
{
    struct trace_port sum = {.sent = 0};

    for (uint32_t i = first; i < first + stride && i < t->intervals; i++) {
        const struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        sum.sent += p->sent;
        sum.received += p->received;
        sum.resent += p->resent;
        sum.queue = larger(sum.queue, p->queue);
        sum.unacked = larger(sum.unacked, p->unacked);
        sum.loaded += p->loaded;
        sum.drained += p->drained;
        sum.no_room += p->no_room;
        sum.carried += p->carried;
        for (unsigned state = 0; state < TRACE_STATES; state++)
            sum.state[state] += p->state[state];
    }
    return sum;
}

static struct trace_node joined_node(const struct trace *t, uint32_t first, uint32_t stride)
{
    struct trace_node sum = {0};

    for (uint32_t i = first; i < first + stride && i < t->intervals; i++) {
        sum.used += t->node[i].used;
        sum.delayed += t->node[i].delayed;
        sum.writing = larger(sum.writing, t->node[i].writing);
    }
    return sum;
}

/* Returns a time as a part of an interval: 255 is all of it. */
static uint8_t share_of(uint32_t time, uint64_t interval)
{
    uint64_t share = time * (uint64_t)UNIT * 255 / interval;

    return share > 255 ? 255 : (uint8_t)share;
}

static void fill_intervals(struct holder *h, const struct trace *t, uint32_t stride, uint32_t count)
{
    Control__Trace *m = &h->message;
    const uint64_t interval = t->interval * stride;
    size_t places = (size_t)count * t->ports;

    m->sent = h->wide;
    m->received = m->sent + places;
    m->carried = m->received + places;
    m->queue = h->narrow;
    m->unacked = m->queue + places;
    m->resent = m->unacked + places;
    m->used = m->resent + places;
    m->delayed = m->used + count;
    m->writing = m->delayed + count;
    m->n_sent = m->n_received = m->n_queue = m->n_unacked = m->n_resent = m->n_carried = places;
    m->n_used = m->n_delayed = m->n_writing = count;
    m->state.data = h->shares;
    m->state.len = places * TRACE_STATES;
    m->loaded.data = m->state.data + m->state.len;
    m->drained.data = m->loaded.data + places;
    m->no_room.data = m->drained.data + places;
    m->loaded.len = m->drained.len = m->no_room.len = places;
    for (uint32_t i = 0; i < count; i++) {
        const struct trace_node node = joined_node(t, i * stride, stride);
        m->used[i] = share_of(node.used, interval);
        m->delayed[i] = share_of(node.delayed, interval);
        m->writing[i] = node.writing;
        for (unsigned port = 0; port < t->ports; port++) {
            const struct trace_port p = joined_port(t, i * stride, stride, port);
            size_t at = (size_t)i * t->ports + port;
            m->sent[at] = p.sent;
            m->received[at] = p.received;
            m->queue[at] = p.queue;
            m->unacked[at] = p.unacked;
            m->resent[at] = p.resent;
            m->loaded.data[at] = share_of(p.loaded, interval);
            m->drained.data[at] = share_of(p.drained, interval);
            m->no_room.data[at] = share_of(p.no_room, interval);
            m->carried[at] = p.carried;
            for (unsigned state = 0; state < TRACE_STATES; state++)
                h->shares[at * TRACE_STATES + state] = share_of(p.state[state], interval);
        }
    }
}

static void fill_events(struct holder *h, const struct trace *t, uint32_t count)
{
    Control__Trace *m = &h->message;
    uint32_t events = trace_kept(t);
    size_t places = (size_t)count * t->ports;

    m->event_at = h->wide + WIDE * places;
    m->event_b = m->event_at + events;
    m->event_kind = h->narrow + 3 * places + 3 * (size_t)count;
    m->event_a = m->event_kind + events;
    m->n_event_at = m->n_event_kind = m->n_event_a = m->n_event_b = events;
    m->events = t->events;
    for (uint32_t i = 0; i < events; i++) {
        const struct trace_event *event = trace_event_at(t, i);
        m->event_at[i] = event->at;
        m->event_kind[i] = event->kind;
        m->event_a[i] = event->a;
        m->event_b[i] = event->b;
    }
}

static void fill_ports(struct holder *h, struct router *router, unsigned ports)
{
    Control__Trace *m = &h->message;

    m->neighbour = h->neighbour;
    m->clock_ahead_ns = h->ahead;
    m->clock_error_ns = h->error;
    m->n_neighbour = m->n_clock_ahead_ns = m->n_clock_error_ns = ports;
    for (unsigned port = 0; port < ports; port++) {
        struct port_info info;
        router_port_info(router, port, &info);
        h->neighbour[port] = info.neighbour;
        h->ahead[port] = info.clock_known ? info.clock_ahead : 0;
        h->error[port] = info.clock_known ? info.clock_error : 0;
    }
}

static void fill_names(struct holder *h)
{
    Control__Trace *m = &h->message;

    m->phase = h->phase;
    m->n_phase = EXCHANGE_STATES;
    m->call = h->call;
    m->n_call = CALLS;
    for (unsigned i = 0; i < EXCHANGE_STATES; i++)
        h->phase[i] = (char *)(uintptr_t)exchange_state_name((enum exchange_state)i);
    for (unsigned i = 0; i < CALLS; i++)
        h->call[i] = (char *)(uintptr_t)group_operation_name(i);
}

static struct holder *make(const struct trace *t, struct router *router, uint32_t stride)
{
    struct holder *h = calloc(1, sizeof *h);
    uint32_t count = (t->intervals + stride - 1) / stride, events = trace_kept(t);
    size_t places = (size_t)count * t->ports;

    if (h == NULL)
        return NULL;
    h->wide = calloc(WIDE * places + 2 * (size_t)events + 1, sizeof *h->wide);
    h->narrow = calloc(3 * places + 3 * (size_t)count + 2 * (size_t)events + 1, sizeof *h->narrow);
    h->shares = calloc(places * (TRACE_STATES + LOADS) + 1, 1);
    control__trace__init(&h->message);
    if (h->wide == NULL || h->narrow == NULL || h->shares == NULL) {
        trace_answer_free(&h->message);
        return NULL;
    }
    h->message.id = (char *)(uintptr_t)t->id;
    h->message.began_ns = t->began;
    h->message.ended_ns = t->ended > t->sampled ? t->ended : t->sampled;
    h->message.under_way = t->ended == 0;
    h->message.interval_ns = t->interval * stride;
    h->message.ports = t->ports;
    fill_intervals(h, t, stride, count);
    fill_events(h, t, count);
    fill_ports(h, router, t->ports);
    fill_names(h);
    return h;
}

Control__Trace *trace_answer_make(const struct trace *t, struct router *router, size_t most)
{
    for (uint32_t stride = 1;; stride *= 2) {
        struct holder *h = make(t, router, stride);
        if (h == NULL)
            return NULL;
        if (control__trace__get_packed_size(&h->message) <= most || stride >= TRACE_INTERVALS)
            return &h->message;
        trace_answer_free(&h->message);
    }
}

void trace_answer_free(Control__Trace *m)
{
    struct holder *h = (struct holder *)(void *)m;

    if (h == NULL)
        return;
    free(h->wide);
    free(h->narrow);
    free(h->shares);
    free(h);
}
