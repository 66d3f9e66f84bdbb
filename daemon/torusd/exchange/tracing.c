#include "daemon/torusd/exchange/tracing.h"

#include <string.h>

#include "daemon/torusd/exchange/job.h"

/* Whether an attempt under way writes to the trace. */
static const struct attempt *writer_of(const struct exchanges *exchanges, const struct trace *t)
{
    const struct attempt *x = exchanges->active;

    while (x != NULL && x->trace != t)
        x = x->next;
    return x;
}

/* Returns the place of a trace that may be replaced: none, or the older one that has ended; or NULL. */
static struct trace **find_place(struct exchanges *exchanges)
{
    struct trace **best = NULL;

    for (unsigned i = 0; i < TRACES_KEPT; i++) {
        struct trace **t = &exchanges->trace[i];
        if (*t == NULL)
            return t;
        if (writer_of(exchanges, *t) == NULL && (best == NULL || (*t)->sampled < (*best)->sampled))
            best = t;
    }
    return best;
}

void tracing_leave(struct attempt *x)
{
    trace_unref(x->trace);
    x->trace = NULL;
}

void tracing_note_links(struct exchanges *exchanges, uint32_t before, uint32_t now)
{
    for (const struct attempt *x = exchanges->active; x != NULL; x = x->next)
        for (unsigned port = 0; x->trace != NULL && port < torus_ports(torus_of(x)); port++)
            if (((before ^ now) & 1u << port) != 0)
                trace_note(x->trace, router_now(router_of(x)),
                           (now & 1u << port) != 0 ? TRACE_LINK_UP : TRACE_LINK_DOWN, port, 0);
}

/* --- samples --- */

static enum trace_state state_of_wait(enum engine_wait wait, bool knows_processor)
{
    switch (wait) {
    case ENGINE_READY:
        return knows_processor ? TRACE_PROCESSOR : TRACE_LINK;
    case ENGINE_SOURCE:
        return TRACE_SOURCE;
    case ENGINE_SINK:
        return TRACE_SINK;
    case ENGINE_OTHERS:
        return TRACE_OTHERS;
    case ENGINE_ROUND:
        return TRACE_ROUND;
    case ENGINE_MEMBERS:
        return TRACE_PROGRAM;
    case ENGINE_DONE:
        break;
    }
    return TRACE_NOTHING;
}

/* Why this node's part of a run is not complete though it has sent everything: its own disk is only to blame when
 * everything has arrived, or bytes that have arrived are not written. */
static enum trace_state state_of_own_part(const struct attempt *x)
{
    struct sink *sink = x->local.sink;

    if (sink == NULL || x->local.engine == NULL || !sink->durable)
        return TRACE_NOTHING;
    return sink->ops->pending(sink) > 0 || x->local.engine->rounds_finished >= exchange_end_round(x)
               ? TRACE_SINK
               : TRACE_OTHERS;
}

/* Why nothing leaves while the attempt has no engine, or the engine has nothing more to send. */
static enum trace_state state_of_attempt(const struct attempt *x)
{
    switch (x->state) {
    case EXCHANGE_OPENING:
        return x->local.source != NULL && !x->local.source->ops->opened(x->local.source)
                   ? TRACE_SOURCE
                   : TRACE_OTHERS;
    case EXCHANGE_RUNNING:
        return (x->awaited & OWN_PART) != 0 ? state_of_own_part(x) : TRACE_NOTHING;
    case EXCHANGE_COMMITTING: /* the sink is closed when the output is in its place */
        return x->local.sink != NULL ? TRACE_SINK : TRACE_NOTHING;
    default:
        return state_of(x)->ended ? TRACE_NOTHING : TRACE_OTHERS;
    }
}

/* Whether bytes are on the link or wait for it. The end of a message does not count: the other system may delay its
 * acknowledgement for 40 ms. */
static bool is_on_link(const struct trace *t, unsigned port, const struct port_traffic *now)
{
    const bool sends = !t->has_last || now->tx_bytes != t->last.port[port].sent;

    return now->queue_bytes > 0 || now->stat.unacked > LINK_LOAD_LEAST ||
           (now->stat.unacked > 0 && sends);
}

static void sample_port(const struct attempt *x, unsigned port, enum engine_wait wait,
                        struct trace_sample *s)
{
    const struct trace *t = x->trace;
    const bool knows_processor = x->exchanges->set.processor != NULL;
    struct port_traffic now;

    router_port_traffic(router_of(x), port, &now);
    s->port[port].sent = now.tx_bytes;
    s->port[port].received = now.rx_bytes;
    s->port[port].queue = now.queue_bytes;
    s->port[port].unacked = now.stat.unacked;
    s->port[port].resent = now.stat.retransmits;
    s->port[port].load =
        (struct link_load_sample){.known = now.stat.tells_room,
                                  .acked = now.stat.acked,
                                  .backlog = now.stat.unacked,
                                  .no_room = now.stat.no_room_us * 1000,
                                  .min_trip = now.stat.min_rtt_us * UINT64_C(1000)};
    if (is_on_link(t, port, &now))
        s->port[port].state = t->has_last && now.stat.retransmits > t->last.port[port].resent
                                  ? TRACE_RESENDING
                                  : TRACE_LINK;
    else if (wait == ENGINE_DONE)
        s->port[port].state = state_of_attempt(x);
    else
        s->port[port].state = state_of_wait(wait, knows_processor);
}

static void take_sample(const struct attempt *x, uint64_t now)
{
    const struct exchanges_setup *set = &x->exchanges->set;
    enum engine_wait wait[TORUS_MAX_PORTS];
    struct trace_sample s = {.writing = 0};

    for (unsigned port = 0; port < x->trace->ports; port++)
        wait[port] = ENGINE_DONE;
    if (x->local.engine != NULL)
        engine_waits(x->local.engine, wait);
    for (unsigned port = 0; port < x->trace->ports; port++)
        sample_port(x, port, wait[port], &s);
    if (set->processor != NULL)
        set->processor(set->processor_context, &s.used, &s.delayed);
    if (x->local.sink != NULL && x->local.engine != NULL && !kind_of(x)->has_session)
        s.writing = x->local.sink->ops->pending(x->local.sink);
    trace_take(x->trace, &s, now);
}

void tracing_begin(struct attempt *x)
{
    struct exchanges *exchanges = x->exchanges;
    const char *id = attempt_first_id(x)->text;
    struct trace **place;

    if (!x->spec.trace || x->trace != NULL)
        return;
    for (unsigned i = 0; i < TRACES_KEPT; i++)
        if (exchanges->trace[i] != NULL && strcmp(exchanges->trace[i]->id, id) == 0)
            x->trace = trace_ref(exchanges->trace[i]);
    place = x->trace == NULL ? find_place(exchanges) : NULL;
    if (place != NULL) {
        trace_unref(*place);
        *place = trace_new(id, torus_ports(torus_of(x)), router_now(router_of(x)));
        x->trace = trace_ref(*place);
    }
    if (x->trace != NULL)
        take_sample(x, router_now(router_of(x)));
    tracing_note_state(x);
}

void tracing_note_state(struct attempt *x)
{
    if (x->trace == NULL)
        return;
    trace_note(x->trace, router_now(router_of(x)), TRACE_PHASE, x->state, 0);
    if (state_of(x)->ended) {
        take_sample(x, router_now(router_of(x)));
        x->trace->ended = router_now(router_of(x));
        trace_pause(x->trace); /* unless another attempt follows */
    }
}

uint64_t tracing_deadline(const struct exchanges *exchanges)
{
    uint64_t first = ROUTER_NEVER;

    for (unsigned i = 0; i < TRACES_KEPT; i++) {
        const struct trace *t = exchanges->trace[i];
        if (t != NULL && writer_of(exchanges, t) != NULL && trace_due(t) < first)
            first = trace_due(t);
    }
    return first;
}

void tracing_tick(struct exchanges *exchanges, uint64_t now)
{
    for (unsigned i = 0; i < TRACES_KEPT; i++) {
        const struct trace *t = exchanges->trace[i];
        const struct attempt *x = t != NULL ? writer_of(exchanges, t) : NULL;
        if (x != NULL && now >= trace_due(t))
            take_sample(x, now);
    }
}

void tracing_free(struct exchanges *exchanges)
{
    for (unsigned i = 0; i < TRACES_KEPT; i++)
        trace_unref(exchanges->trace[i]);
}
