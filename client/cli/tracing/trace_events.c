#include "client/cli/tracing/trace_events.h"

#include <inttypes.h>
#include <stdio.h>

#define NODE_TRACK 0 /* thread of a node's phases, steps and calls; port p has thread p + 1 */

const char *trace_state_name(enum torus_trace_state state)
{
    switch (state) {
    case TORUS_TRACE_NOTHING:
        return "nothing to send";
    case TORUS_TRACE_LINK:
        return "on the link";
    case TORUS_TRACE_RESENDING:
        return "on the link, sent again";
    case TORUS_TRACE_SOURCE:
        return "waits for its source";
    case TORUS_TRACE_SINK:
        return "waits for its disk";
    case TORUS_TRACE_OTHERS:
        return "waits for other nodes";
    case TORUS_TRACE_ROUND:
        return "waits for the end of a round";
    case TORUS_TRACE_PROGRAM:
        return "waits for programs";
    case TORUS_TRACE_PROCESSOR:
        return "waits for a processor";
    }
    return "unknown";
}

/* Adds an event of a node's track; `more` may be NULL. Times are microseconds. */
static void add(json_t *list, const char *phase, const char *name, uint32_t rank, unsigned track,
                double at, json_t *more)
{
    json_t *o = json_pack("{s:s, s:s, s:i, s:i, s:f}", "ph", phase, "name", name, "pid", (int)rank,
                          "tid", (int)track, "ts", at);

    if (more != NULL)
        (void)json_object_update_missing(o, more);
    json_decref(more);
    (void)json_array_append_new(list, o);
}

static void add_name(json_t *list, const char *what, uint32_t rank, unsigned track,
                     const char *name)
{
    add(list, "M", what, rank, track, 0, json_pack("{s:{s:s}}", "args", "name", name));
}

static void name_tracks(json_t *list, const struct collected_traces *c, uint32_t rank)
{
    const struct torus_trace *t = c->node[rank].trace;
    char text[160], port_name[TORUS_PORT_NAME_SIZE];

    (void)snprintf(text, sizeof text, "node %" PRIu32 ", %s", rank,
                   all_nodes_name(&c->nodes, rank));
    add_name(list, "process_name", rank, NODE_TRACK, text);
    add(list, "M", "process_sort_index", rank, NODE_TRACK, 0,
        json_pack("{s:{s:i}}", "args", "sort_index", (int)rank));
    add_name(list, "thread_name", rank, NODE_TRACK, "phases, steps, calls");
    for (unsigned port = 0; port < t->ports && port < torus_ports(&c->nodes.torus); port++) {
        if (t->neighbour[port] >= c->nodes.torus.nodes)
            continue;
        (void)snprintf(text, sizeof text, "port %s to %s",
                       torus_port_name(&c->nodes.torus, rank, port, port_name),
                       all_nodes_name(&c->nodes, t->neighbour[port]));
        add_name(list, "thread_name", rank, port + 1, text);
    }
}

/* The state that had the most time of an interval. */
static unsigned main_state(const struct torus_trace *t, uint32_t interval, unsigned port)
{
    const uint8_t *share = &t->state[((size_t)interval * t->ports + port) * TORUS_TRACE_STATES];
    unsigned best = 0;

    for (unsigned state = 1; state < TORUS_TRACE_STATES; state++)
        if (share[state] > share[best])
            best = state;
    return best;
}

/* Adds the slices of a port: intervals with the same main state are one slice. */
static void add_port(json_t *list, const struct collected_traces *c, uint32_t rank, unsigned port)
{
    const struct torus_trace *t = c->node[rank].trace;

    for (uint32_t i = 0, end; i < t->intervals; i = end) {
        unsigned state = main_state(t, i, port);
        uint64_t bytes = 0, resent = 0;
        for (end = i; end < t->intervals && main_state(t, end, port) == state; end++) {
            bytes += t->sent[(size_t)end * t->ports + port];
            resent += t->resent[(size_t)end * t->ports + port];
        }
        if (state == TORUS_TRACE_NOTHING)
            continue;
        double from = collected_traces_time(c, rank, t->began_ns + i * t->interval_ns) / 1e3;
        add(list, "X", trace_state_name((enum torus_trace_state)state), rank, port + 1, from,
            json_pack("{s:f, s:{s:I, s:I}}", "dur", (double)((end - i) * t->interval_ns) / 1e3,
                      "args", "bytes sent", (json_int_t)bytes, "packets sent again",
                      (json_int_t)resent));
    }
}

static void add_counters(json_t *list, const struct collected_traces *c, uint32_t rank)
{
    const struct torus_trace *t = c->node[rank].trace;
    const double to_mbit = 8e3 / (double)t->interval_ns;
    char name[64], port_name[TORUS_PORT_NAME_SIZE];

    for (uint32_t i = 0; i < t->intervals; i++) {
        double at = collected_traces_time(c, rank, t->began_ns + i * t->interval_ns) / 1e3;
        for (unsigned port = 0; port < t->ports && port < torus_ports(&c->nodes.torus); port++) {
            size_t k = (size_t)i * t->ports + port;
            if (t->neighbour[port] >= c->nodes.torus.nodes)
                continue;
            (void)torus_port_name(&c->nodes.torus, rank, port, port_name);
            (void)snprintf(name, sizeof name, "%s Mbit/s", port_name);
            add(list, "C", name, rank, 0, at,
                json_pack("{s:{s:f, s:f}}", "args", "out", (double)t->sent[k] * to_mbit, "in",
                          (double)t->received[k] * to_mbit));
            (void)snprintf(name, sizeof name, "%s queue KiB", port_name);
            add(list, "C", name, rank, 0, at,
                json_pack("{s:{s:f, s:f}}", "args", "in the daemon", t->queue[k] / 1024.0,
                          "on the link", t->unacked[k] / 1024.0));
        }
        add(list, "C", "processor %", rank, 0, at,
            json_pack("{s:{s:f, s:f}}", "args", "used", t->used[i] / 2.55, "none free",
                      t->delayed[i] / 2.55));
    }
}

/* A slice of the node's track. */
static void add_slice(json_t *list, const char *name, uint32_t rank, double from, double to)
{
    add(list, "X", name, rank, NODE_TRACK, from,
        json_pack("{s:f}", "dur", to > from ? to - from : 0));
}

struct node_track {
    json_t *list;
    const struct collected_traces *c;
    uint32_t rank;
    double phase_began, step_began;
    const char *phase; /* NULL: none yet */
};

static double event_time(const struct node_track *k, const struct torus_trace *t, size_t i)
{
    return collected_traces_time(k->c, k->rank, t->began_ns + t->event_at[i]) / 1e3;
}

static const char *name_of(const char *const *names, size_t count, uint32_t number)
{
    return number < count ? names[number] : "unknown";
}

/* "alltoall, call 3", or "alltoall, call 3 on dimensions 0 2". */
static void name_call(const struct torus_trace *t, size_t event, char *text, size_t size)
{
    uint64_t part = t->event_b[event] >> 48;
    int n =
        snprintf(text, size, "%.40s, call %" PRIu64, name_of(t->call, t->calls, t->event_a[event]),
                 t->event_b[event] & UINT64_C(0xffffffffffff));

    if (part != 0)
        n += snprintf(text + n, size - (size_t)n, " on dimension%s",
                      (part & (part - 1)) != 0 ? "s" : "");
    for (unsigned d = 0; d < 16 && (size_t)n < size; d++)
        if ((part & UINT64_C(1) << d) != 0)
            n += snprintf(text + n, size - (size_t)n, " %u", d);
}

/* Adds a call, which began when the matching event says. Calls may overlap, which slices of a track must not. */
static void add_call(const struct node_track *k, const struct torus_trace *t, size_t end)
{
    char name[160], id[64];

    for (size_t i = end; i-- > 0;) {
        if (t->event_kind[i] != TORUS_TRACE_CALL_BEGUN || t->event_a[i] != t->event_a[end] ||
            t->event_b[i] != t->event_b[end])
            continue;
        name_call(t, end, name, sizeof name);
        (void)snprintf(id, sizeof id, "%" PRIu32 "-%zu", k->rank, end);
        add(k->list, "b", name, k->rank, NODE_TRACK, event_time(k, t, i),
            json_pack("{s:s, s:s}", "cat", "calls", "id", id));
        add(k->list, "e", name, k->rank, NODE_TRACK, event_time(k, t, end),
            json_pack("{s:s, s:s}", "cat", "calls", "id", id));
        return;
    }
}

static void add_event(struct node_track *k, const struct torus_trace *t, size_t i)
{
    double at = event_time(k, t, i);
    char name[64];

    switch (t->event_kind[i]) {
    case TORUS_TRACE_PHASE:
        if (k->phase != NULL)
            add_slice(k->list, k->phase, k->rank, k->phase_began, at);
        k->phase = name_of(t->phase, t->phases, t->event_a[i]);
        k->phase_began = k->step_began = at;
        break;
    case TORUS_TRACE_STEP:
        (void)snprintf(name, sizeof name, "step %" PRIu32, t->event_a[i]);
        add_slice(k->list, name, k->rank, k->step_began, at);
        k->step_began = at;
        break;
    case TORUS_TRACE_FINISHED_ROUND:
        (void)snprintf(name, sizeof name, "round %" PRIu64 " is over", t->event_b[i]);
        add(k->list, "i", name, k->rank, NODE_TRACK, at, json_pack("{s:s}", "s", "t"));
        k->step_began = at;
        break;
    case TORUS_TRACE_CALL_ENDED:
        add_call(k, t, i);
        break;
    case TORUS_TRACE_LINK_DOWN:
    case TORUS_TRACE_LINK_UP:
        add(k->list, "i", t->event_kind[i] == TORUS_TRACE_LINK_UP ? "link is up" : "link is down",
            k->rank, t->event_a[i] + 1, at, json_pack("{s:s}", "s", "p"));
        break;
    default:
        break;
    }
}

json_t *trace_events(const struct collected_traces *c)
{
    json_t *list = json_array();

    for (uint32_t rank = 0; rank < c->nodes.torus.nodes; rank++) {
        const struct torus_trace *t = c->node[rank].trace;
        struct node_track track = {.list = list, .c = c, .rank = rank};
        if (t == NULL)
            continue;
        name_tracks(list, c, rank);
        for (unsigned port = 0; port < t->ports; port++)
            if (t->neighbour[port] < c->nodes.torus.nodes)
                add_port(list, c, rank, port);
        add_counters(list, c, rank);
        for (size_t i = 0; i < t->events; i++)
            add_event(&track, t, i);
        if (track.phase != NULL && t->under_way)
            add_slice(list, track.phase, rank, track.phase_began,
                      collected_traces_time(c, rank, t->ended_ns) / 1e3);
    }
    return list;
}
