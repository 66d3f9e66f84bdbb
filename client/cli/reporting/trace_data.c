#include "client/cli/reporting/trace_data.h"

#include <stdlib.h>
#include <string.h>

static int not_a_trace(const char *path, const char *why, struct error *e)
{
    return error_set(e, ERROR_USAGE, "%.200s is no trace of torusctl: %s", path, why);
}

/* Returns number `index` of an array; 0 if there is none. */
static double number_at(const json_t *array, size_t index)
{
    return json_number_value(json_array_get(array, index));
}

static void read_port(struct port_time *p, const json_t *from, size_t intervals, unsigned ports,
                      unsigned port, double interval)
{
    const json_t *states = json_object_get(from, "state"), *sent = json_object_get(from, "sent");
    const json_t *resent = json_object_get(from, "resent");

    for (size_t i = 0; i < intervals; i++) {
        size_t at = i * ports + port;
        p->bytes += number_at(sent, at);
        p->resent += number_at(resent, at);
        for (unsigned state = 0; state < TORUS_TRACE_STATES; state++)
            p->state[state] += number_at(states, at * TORUS_TRACE_STATES + state) / 255 * interval;
    }
}

static void read_node(struct trace_data *d, uint32_t rank, const json_t *from)
{
    struct trace_node_data *n = &d->node[rank];
    const json_t *neighbour = json_object_get(from, "neighbour"),
                 *used = json_object_get(from, "used");
    const json_t *delayed = json_object_get(from, "delayed");
    double interval = json_number_value(json_object_get(from, "interval"));
    unsigned ports = (unsigned)json_integer_value(json_object_get(from, "ports"));
    size_t intervals = json_array_size(used);

    n->name = json_string_value(json_object_get(from, "name"));
    n->name = n->name != NULL ? n->name : "?";
    n->traced = intervals > 0 && ports == torus_ports(&d->torus);
    n->began = json_number_value(json_object_get(from, "began"));
    n->ended = json_number_value(json_object_get(from, "ended"));
    n->events = json_object_get(from, "events");
    for (unsigned port = 0; port < torus_ports(&d->torus); port++) {
        double to = n->traced ? number_at(neighbour, port) : -1;
        n->port[port].neighbour = to >= 0 && to < d->torus.nodes ? (uint32_t)to : TORUS_NO_NODE;
        if (n->traced)
            read_port(&n->port[port], from, intervals, ports, port, interval);
    }
    for (size_t i = 0; n->traced && i < intervals; i++) {
        n->used += number_at(used, i) / 255 * interval;
        n->delayed += number_at(delayed, i) / 255 * interval;
    }
}

static int read_own(struct trace_data *d, const char *path, struct error *e)
{
    const json_t *nodes = json_object_get(d->own, "nodes");
    const char *dims = json_string_value(json_object_get(d->own, "dims"));
    struct error why;

    if (json_integer_value(json_object_get(d->own, "version")) != 1)
        return not_a_trace(path, "it has no member \"torusd\" of version 1", e);
    if (dims == NULL || torus_parse(&d->torus, dims, &why) != 0 ||
        json_array_size(nodes) != d->torus.nodes)
        return not_a_trace(path, "its torus and its nodes do not fit together", e);
    d->id = json_string_value(json_object_get(d->own, "id"));
    d->id = d->id != NULL ? d->id : "";
    d->seconds = json_number_value(json_object_get(d->own, "seconds"));
    d->clock_error = json_number_value(json_object_get(d->own, "clock_error"));
    d->node = calloc(d->torus.nodes, sizeof *d->node);
    if (d->node == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the trace");
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++)
        read_node(d, rank, json_array_get(nodes, rank));
    return 0;
}

int trace_data_read(struct trace_data *d, const char *path, struct error *e)
{
    json_error_t why;

    *d = (struct trace_data){.file = json_load_file(path, 0, &why)};
    if (d->file == NULL && why.line <= 0)
        return error_set(e, ERROR_IO, "%.200s cannot be read: %.160s", path, why.text);
    if (d->file == NULL)
        return error_set(e, ERROR_USAGE, "%.200s is no JSON: line %d: %.160s", path, why.line,
                         why.text);
    d->own = json_object_get(d->file, "torusd");
    if (read_own(d, path, e) == 0)
        return 0;
    trace_data_free(d);
    return -1;
}

void trace_data_free(struct trace_data *d)
{
    free(d->node);
    json_decref(d->file);
    *d = (struct trace_data){.file = NULL};
}
