#include "client/cli/tracing/trace_file.h"

#include <inttypes.h>
#include <string.h>

#include "client/cli/terminal/output_file.h"
#include "client/cli/tracing/trace_events.h"
#include "proto/elapsed.h"

static json_t *array_of_64(const uint64_t *list, size_t count)
{
    json_t *a = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(
            a, json_integer(list[i] < INT64_MAX ? (json_int_t)list[i] : INT64_MAX));
    return a;
}

static json_t *array_of_32(const uint32_t *list, size_t count)
{
    json_t *a = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(a, json_integer(list[i]));
    return a;
}

static json_t *array_of_8(const uint8_t *list, size_t count)
{
    json_t *a = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(a, json_integer(list[i]));
    return a;
}

static json_t *events_of(const struct collected_traces *c, uint32_t rank)
{
    const struct torus_trace *t = c->node[rank].trace;
    json_t *list = json_array();

    for (size_t i = 0; i < t->events; i++)
        (void)json_array_append_new(
            list, json_pack("[f, i, i, I]",
                            collected_traces_time(c, rank, t->began_ns + t->event_at[i]) / 1e9,
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
    size_t places = (size_t)t->intervals * t->ports;
    (void)json_object_set_new(o, "began",
                              json_real(collected_traces_time(c, rank, t->began_ns) / 1e9));
    (void)json_object_set_new(o, "ended",
                              json_real(collected_traces_time(c, rank, t->ended_ns) / 1e9));
    (void)json_object_set_new(o, "interval", json_real((double)t->interval_ns / 1e9));
    (void)json_object_set_new(o, "aligned", json_boolean(n->aligned));
    (void)json_object_set_new(o, "clock_error", json_real((double)n->error_ns / 1e9));
    (void)json_object_set_new(o, "ports", json_integer(t->ports));
    (void)json_object_set_new(o, "neighbour", array_of_32(t->neighbour, t->ports));
    (void)json_object_set_new(o, "sent", array_of_64(t->sent, places));
    (void)json_object_set_new(o, "received", array_of_64(t->received, places));
    (void)json_object_set_new(o, "queue", array_of_32(t->queue, places));
    (void)json_object_set_new(o, "unacked", array_of_32(t->unacked, places));
    (void)json_object_set_new(o, "resent", array_of_32(t->resent, places));
    (void)json_object_set_new(o, "state", array_of_8(t->state, places * TORUS_TRACE_STATES));
    if (t->carried != NULL) {
        (void)json_object_set_new(o, "loaded", array_of_8(t->loaded, places));
        (void)json_object_set_new(o, "drained", array_of_8(t->drained, places));
        (void)json_object_set_new(o, "no_room", array_of_8(t->no_room, places));
        (void)json_object_set_new(o, "carried", array_of_64(t->carried, places));
    }
    (void)json_object_set_new(o, "used", array_of_32(t->used, t->intervals));
    (void)json_object_set_new(o, "delayed", array_of_32(t->delayed, t->intervals));
    (void)json_object_set_new(o, "writing", array_of_32(t->writing, t->intervals));
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
    int code = collected_traces_ask(cli, id, &c);

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
