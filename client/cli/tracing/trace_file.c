#include "client/cli/tracing/trace_file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/terminal/json.h"
#include "client/cli/terminal/output_file.h"
#include "proto/elapsed.h"

/* ---- Collecting the traces ------------------------------------------------------------------- */

#define WAIT_MS 10000u

/* Finds by how much each node's clock is ahead of the asked one: each further node over the link that adds the least
 * error. */
static void align(struct collected_traces *c)
{
    const uint32_t nodes = c->nodes.torus.nodes;

    if (c->node[c->nodes.initiator].trace == NULL)
        return;
    c->node[c->nodes.initiator].aligned = true;
    for (;;) {
        uint32_t best = TORUS_NO_NODE;
        int64_t ahead = 0;
        uint64_t error = UINT64_MAX;
        for (uint32_t from = 0; from < nodes; from++) {
            const struct torus_trace *t = c->node[from].trace;
            for (uint32_t port = 0; c->node[from].aligned && t != NULL && port < t->ports; port++) {
                uint32_t to = t->neighbour[port];
                uint64_t sum = c->node[from].error_ns + t->clock_error_ns[port];
                if (t->clock_error_ns[port] == 0 || to >= nodes || c->node[to].aligned ||
                    sum >= error)
                    continue;
                best = to;
                ahead = (int64_t)((uint64_t)c->node[from].ahead_ns +
                                  (uint64_t)t->clock_ahead_ns[port]); /* may be anything */
                error = sum;
            }
        }
        if (best == TORUS_NO_NODE)
            return;
        c->node[best].aligned = true;
        c->node[best].ahead_ns = ahead;
        c->node[best].error_ns = error;
        c->error_ns = error > c->error_ns ? error : c->error_ns;
    }
}

/* A time of a node's clock on the clock of the asked node. */
static uint64_t here(const struct collected_trace *n, uint64_t node_ns)
{
    return n->ahead_ns > 0 ? elapsed((uint64_t)n->ahead_ns, node_ns)
                           : node_ns + (uint64_t)-n->ahead_ns;
}

static void find_span(struct collected_traces *c)
{
    c->began_ns = UINT64_MAX;
    for (uint32_t rank = 0; rank < c->nodes.torus.nodes; rank++) {
        const struct collected_trace *n = &c->node[rank];
        if (n->trace == NULL || !n->aligned)
            continue;
        uint64_t began = here(n, n->trace->began_ns), ended = here(n, n->trace->ended_ns);
        c->began_ns = began < c->began_ns ? began : c->began_ns;
        c->ended_ns = ended > c->ended_ns ? ended : c->ended_ns;
    }
}

static int nothing(const char *id, struct error *e)
{
    return error_set(
        e, ERROR_REFUSED,
        id != NULL
            ? "this node has no trace of %.60s: too many runs are traced at once, or another one "
              "has been traced since"
            : "nothing has been traced at this node since torusd began: run 'torusctl exchange "
              "--trace FILE', or a program with TORUS_TRACE=1%s",
        id != NULL ? id : "");
}

int collected_traces_take(struct collected_traces *c, const struct torus_survey *answers,
                          const char *id, struct error *e)
{
    const uint32_t nodes = c->nodes.torus.nodes;

    c->node = calloc(nodes, sizeof *c->node);
    if (c->node == NULL || answers->count != nodes)
        return error_set(e, ERROR_MEMORY, "out of memory for the trace");
    const struct torus_trace *own = answers->nodes[c->nodes.initiator]->trace;
    if (own == NULL || (id != NULL && strcmp(own->id, id) != 0))
        return nothing(id, e);
    c->id = own->id;
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const struct torus_trace *t = answers->nodes[rank]->trace;
        if (t == NULL || strcmp(t->id, c->id) != 0 || t->ports != torus_ports(&c->nodes.torus))
            continue;
        c->node[rank].trace = t;
        c->traced++;
    }
    align(c);
    find_span(c);
    return 0;
}

/* Asks all nodes for their last trace, and takes those with this id. Returns EXIT_DONE, or another exit code after
 * printing the reason. The caller gives *c to collected_traces_free() in any case. */
static int ask(struct cli *cli, const char *id, struct collected_traces *c)
{
    struct torus_error failed;
    struct error e;

    *c = (struct collected_traces){.survey = NULL};
    int code = all_nodes_ask(cli, &c->nodes);
    if (code != EXIT_DONE)
        return code;
    if (torus_client_survey(cli->client, TORUS_SURVEY_TRACE, WAIT_MS, &c->survey, &failed) != 0)
        return cli_fail_client(cli, &failed);
    return collected_traces_take(c, c->survey, id, &e) == 0 ? EXIT_DONE : cli_fail(cli, &e);
}

void collected_traces_free(struct collected_traces *c)
{
    free(c->node);
    torus_survey_free(c->survey);
    all_nodes_free(&c->nodes);
}

/* A time of a node's clock as nanoseconds after the run began anywhere. */
static double run_time(const struct collected_traces *c, uint32_t rank, uint64_t node_ns)
{
    const struct collected_trace *n = &c->node[rank];

    /* Without a comparison of clocks, the node's trace is taken to begin with the run. */
    if (!n->aligned)
        return (double)elapsed(n->trace->began_ns, node_ns);
    return (double)(int64_t)(here(n, node_ns) - c->began_ns);
}

/* ---- The events, as trace viewers draw them -------------------------------------------------- */

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
        double from = run_time(c, rank, t->began_ns + i * t->interval_ns) / 1e3;
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
        double at = run_time(c, rank, t->began_ns + i * t->interval_ns) / 1e3;
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

/* Adds a slice to the node's track. */
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
    return run_time(k->c, k->rank, t->began_ns + t->event_at[i]) / 1e3;
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

/* Slices, counters and names of all nodes; NULL if memory is short. */
static json_t *trace_events(const struct collected_traces *c)
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
                      run_time(c, rank, t->ended_ns) / 1e3);
    }
    return list;
}

/* ---- The file -------------------------------------------------------------------------------- */

/* An array of unsigned integers of this size. */
static json_t *numbers(const void *list, size_t size, size_t count)
{
    json_t *a = json_array();

    for (size_t i = 0; i < count; i++) {
        const uint64_t number = size == 8   ? ((const uint64_t *)list)[i]
                                : size == 4 ? ((const uint32_t *)list)[i]
                                            : ((const uint8_t *)list)[i];
        (void)json_array_append_new(a, json_count(number));
    }
    return a;
}

static json_t *events_of(const struct collected_traces *c, uint32_t rank)
{
    const struct torus_trace *t = c->node[rank].trace;
    json_t *list = json_array();

    for (size_t i = 0; i < t->events; i++)
        (void)json_array_append_new(
            list, json_pack("[f, i, i, I]", run_time(c, rank, t->began_ns + t->event_at[i]) / 1e9,
                            (int)t->event_kind[i], (int)t->event_a[i], (json_int_t)t->event_b[i]));
    return list;
}

static json_t *node_value(const struct collected_traces *c, uint32_t rank)
{
    const struct collected_trace *n = &c->node[rank];
    const struct torus_trace *t = n->trace;
    json_t *o = json_pack("{s:i, s:s}", "rank", (int)rank, "name", all_nodes_name(&c->nodes, rank));

    if (t == NULL)
        return o;
    const size_t places = (size_t)t->intervals * t->ports;
    const struct {
        const char *name;
        const void *list;
        size_t size, count;
        bool of_loads; /* a node's release tells all of these, or none */
    } lists[] = {
        {"neighbour", t->neighbour, 4, t->ports, false},
        {"sent", t->sent, 8, places, false},
        {"received", t->received, 8, places, false},
        {"queue", t->queue, 4, places, false},
        {"unacked", t->unacked, 4, places, false},
        {"resent", t->resent, 4, places, false},
        {"state", t->state, 1, places * TORUS_TRACE_STATES, false},
        {"loaded", t->loaded, 1, places, true},
        {"drained", t->drained, 1, places, true},
        {"no_room", t->no_room, 1, places, true},
        {"carried", t->carried, 8, places, true},
        {"used", t->used, 4, t->intervals, false},
        {"delayed", t->delayed, 4, t->intervals, false},
        {"writing", t->writing, 4, t->intervals, false},
    };
    (void)json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:b, s:f, s:i}", "began",
                                              run_time(c, rank, t->began_ns) / 1e9, "ended",
                                              run_time(c, rank, t->ended_ns) / 1e9, "interval",
                                              (double)t->interval_ns / 1e9, "aligned",
                                              (int)n->aligned, "clock_error",
                                              (double)n->error_ns / 1e9, "ports", (int)t->ports));
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (t->carried != NULL || !lists[i].of_loads)
            (void)json_object_set_new(o, lists[i].name,
                                      numbers(lists[i].list, lists[i].size, lists[i].count));
    (void)json_object_set_new(o, "events", events_of(c, rank));
    return o;
}

static json_t *own_value(const struct collected_traces *c, json_t *run)
{
    json_t *nodes = json_array(), *states = json_array();
    char dims[TORUS_TEXT_SIZE];

    for (uint32_t rank = 0; rank < c->nodes.torus.nodes; rank++)
        (void)json_array_append_new(nodes, node_value(c, rank));
    for (unsigned state = 0; state < TORUS_TRACE_STATES; state++)
        (void)json_array_append_new(states,
                                    json_string(trace_state_name((enum torus_trace_state)state)));
    return json_pack("{s:i, s:s, s:s, s:f, s:f, s:O?, s:o, s:o}", "version", 1, "dims",
                     torus_format(&c->nodes.torus, dims), "id", c->id, "seconds",
                     (double)elapsed(c->began_ns, c->ended_ns) / 1e9, "clock_error",
                     (double)c->error_ns / 1e9, "run", run, "states", states, "nodes", nodes);
}

static int write_value(const char *path, const json_t *value, struct error *e)
{
    struct output_file file;

    if (output_file_open(&file, path, e) != 0)
        return -1;
    (void)json_dumpf(value, file.stream, JSON_COMPACT | JSON_REAL_PRECISION(12));
    (void)fputc('\n', file.stream);
    return output_file_finish(&file, e);
}

int trace_file_save(const struct collected_traces *c, const char *path, json_t *run,
                    struct error *e)
{
    json_t *value = json_pack("{s:s, s:o, s:o}", "displayTimeUnit", "ms", "traceEvents",
                              trace_events(c), "torusd", own_value(c, run));
    int r = value != NULL ? write_value(path, value, e)
                          : error_set(e, ERROR_MEMORY, "out of memory for the trace");

    json_decref(value);
    return r;
}

int trace_file_check(const struct cli *cli, const char *path)
{
    if (path == NULL || strcmp(path, "-") != 0)
        return EXIT_DONE;
    return cli_fail_usage(cli, "--trace: standard output is for the report, so name a file; "
                               "afterwards 'torusctl trace -' writes the trace there");
}

int trace_file_write(struct cli *cli, const char *path, const char *id, json_t *run)
{
    struct collected_traces c;
    struct error e;
    int code = ask(cli, id, &c);

    if (code == EXIT_DONE && trace_file_save(&c, path, run, &e) != 0)
        code = cli_fail(cli, &e);
    if (code == EXIT_DONE && c.traced < c.nodes.torus.nodes) {
        char text[120];
        (void)snprintf(text, sizeof text,
                       "the trace has %" PRIu32 " of %" PRIu32
                       " nodes: the others have not answered",
                       c.traced, c.nodes.torus.nodes);
        cli_warn(text);
    }
    collected_traces_free(&c);
    return code;
}
