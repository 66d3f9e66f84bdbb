#include "client/cli/reporting/trace_data.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "proto/text.h"

#define NUMBER_MOST 1e19  /* of a counter: 64 bits */
#define SECONDS_MOST 1e10 /* three hundred years */
#define NAME_SIZE 256

static int not_a_trace(const char *path, const char *why, struct error *e)
{
    return error_set(e, ERROR_USAGE, "%.200s is not a trace of torusctl: %s", path, why);
}

/* Returns number `index` of an array; 0 if there is none. */
static double number_at(const json_t *array, size_t index)
{
    return json_number_value(json_array_get(array, index));
}

/* Judges the link of a port by what it held up. Without memory nothing is known about it. */
static void read_loads(struct port_time *p, const json_t *from, size_t intervals, unsigned ports,
                       unsigned port, double interval)
{
    const json_t *loaded = json_object_get(from, "loaded");
    const json_t *drained = json_object_get(from, "drained");
    const json_t *no_room = json_object_get(from, "no_room");
    const json_t *carried = json_object_get(from, "carried");
    struct link_use *use = calloc(intervals + 1, sizeof *use);

    for (size_t i = 0; use != NULL && i < intervals; i++) {
        const size_t at = i * ports + port;
        use[i] = (struct link_use){.loaded = number_at(loaded, at) / 255 * interval,
                                   .carried = number_at(carried, at),
                                   .drained = number_at(drained, at) / 255 * interval};
        p->no_room += number_at(no_room, at) / 255 * interval;
    }
    if (use != NULL)
        link_rate_find(use, intervals, &p->link);
    free(use);
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
    read_loads(p, from, intervals, ports, port, interval);
}

/* Whether a member is an array of `count` numbers of at least 0 and at most `most`. */
static bool is_list(const json_t *node, const char *member, size_t count, double most)
{
    const json_t *list = json_object_get(node, member), *value;
    size_t i;

    if (!json_is_array(list) || json_array_size(list) != count)
        return false;
    json_array_foreach(list, i, value)
    {
        double number = json_number_value(value);
        if (!json_is_number(value) || number < 0 || number > most)
            return false;
    }
    return true;
}

static bool are_events(const json_t *list)
{
    const json_t *event;
    size_t i;

    json_array_foreach(list, i, event)
    {
        if (json_array_size(event) != 4 || !json_is_number(json_array_get(event, 0)))
            return false;
        for (size_t k = 1; k < 4; k++)
            if (!json_is_integer(json_array_get(event, k)))
                return false;
    }
    return json_is_array(list);
}

/* Whether the neighbours are those that the node has in the torus. */
static bool are_neighbours(const struct torus *t, uint32_t rank, const json_t *list)
{
    for (unsigned port = 0; port < torus_ports(t); port++)
        if (json_integer_value(json_array_get(list, port)) !=
            (json_int_t)torus_neighbour(t, rank, port))
            return false;
    return true;
}

/* Whether a member is a time in seconds. */
static bool is_time(const json_t *node, const char *member)
{
    const json_t *value = json_object_get(node, member);

    return json_is_number(value) && json_number_value(value) > -SECONDS_MOST &&
           json_number_value(value) < SECONDS_MOST;
}

/* What links held up, by interval and port: a node's release tells all of it, or nothing. */
static const char *const loads[] = {"loaded", "drained", "no_room", "carried"};

static bool tells_loads(const json_t *node)
{
    for (size_t i = 0; i < sizeof loads / sizeof loads[0]; i++)
        if (json_object_get(node, loads[i]) != NULL)
            return true;
    return false;
}

/* Returns the member of a traced node that is not as it must be, or NULL. */
static const char *wrong_member(const struct trace_data *d, uint32_t rank, const json_t *from)
{
    static const char *const times[] = {"began", "ended", "interval", "clock_error"};
    static const struct {
        const char *name;
        size_t by_port; /* elements by interval and port; 0: one by interval */
        double most;
    } lists[] = {{"sent", 1, NUMBER_MOST},   {"received", 1, NUMBER_MOST},
                 {"queue", 1, NUMBER_MOST},  {"unacked", 1, NUMBER_MOST},
                 {"resent", 1, NUMBER_MOST}, {"state", TORUS_TRACE_STATES, 255},
                 {"used", 0, NUMBER_MOST},   {"delayed", 0, NUMBER_MOST},
                 {"writing", 0, NUMBER_MOST}};
    const unsigned ports = torus_ports(&d->torus);
    const size_t intervals = json_array_size(json_object_get(from, "used"));

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (!is_time(from, times[i]))
            return times[i];
    if (json_number_value(json_object_get(from, "interval")) <= 0)
        return "interval";
    if (json_integer_value(json_object_get(from, "ports")) != (json_int_t)ports)
        return "ports";
    if (!is_list(from, "neighbour", ports, NUMBER_MOST) ||
        !are_neighbours(&d->torus, rank, json_object_get(from, "neighbour")))
        return "neighbour";
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        if (!is_list(from, lists[i].name,
                     lists[i].by_port > 0 ? intervals * ports * lists[i].by_port : intervals,
                     lists[i].most))
            return lists[i].name;
    for (size_t i = 0; tells_loads(from) && i < sizeof loads / sizeof loads[0]; i++)
        if (!is_list(from, loads[i], intervals * ports, NUMBER_MOST))
            return loads[i];
    return are_events(json_object_get(from, "events")) ? NULL : "events";
}

static void read_arrays(struct trace_data *d, uint32_t rank, const json_t *from)
{
    const json_t *used = json_object_get(from, "used");
    const json_t *delayed = json_object_get(from, "delayed");
    struct trace_node_data *n = &d->node[rank];
    const double interval = json_number_value(json_object_get(from, "interval"));
    const unsigned ports = torus_ports(&d->torus);
    const size_t intervals = json_array_size(used);

    n->traced = true;
    n->tells_loads = tells_loads(from);
    n->began = json_number_value(json_object_get(from, "began"));
    n->ended = json_number_value(json_object_get(from, "ended"));
    n->events = json_object_get(from, "events");
    for (unsigned port = 0; port < ports; port++) {
        n->port[port].neighbour = torus_neighbour(&d->torus, rank, port);
        read_port(&n->port[port], from, intervals, ports, port, interval);
    }
    for (size_t i = 0; i < intervals; i++) {
        n->used += number_at(used, i) / 255 * interval;
        n->delayed += number_at(delayed, i) / 255 * interval;
    }
}

/* Returns a text of an object without control characters, which others may have put there; `otherwise` if it has none.
 * The object keeps the text. */
static const char *clean_text(json_t *object, const char *member, const char *otherwise)
{
    const char *given = json_string_value(json_object_get(object, member));
    char text[NAME_SIZE];

    if (given == NULL)
        return otherwise;
    (void)json_object_set_new(object, member,
                              json_string(text_printable(text, sizeof text, given)));
    given = json_string_value(json_object_get(object, member));
    return given != NULL ? given : otherwise;
}

/* Returns 0, or -1 with *e if the node's arrays do not fit together. */
static int read_node(struct trace_data *d, const char *path, uint32_t rank, json_t *from,
                     struct error *e)
{
    struct trace_node_data *n = &d->node[rank];
    const char *wrong;

    n->name = clean_text(from, "name", "?");
    for (unsigned port = 0; port < torus_ports(&d->torus); port++)
        n->port[port].neighbour = TORUS_NO_NODE;
    if (json_object_get(from, "used") == NULL)
        return 0; /* this node has not answered */
    wrong = wrong_member(d, rank, from);
    if (wrong != NULL)
        return error_set(e, ERROR_USAGE,
                         "%.200s is not a trace of torusctl: \"%s\" of node %" PRIu32
                         " is missing, or does not fit the rest",
                         path, wrong, rank);
    read_arrays(d, rank, from);
    return 0;
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
    d->id = clean_text(d->own, "id", "");
    d->seconds = json_number_value(json_object_get(d->own, "seconds"));
    if (!is_time(d->own, "seconds") || d->seconds < 0)
        return not_a_trace(path, "its \"seconds\" are not the length of a run", e);
    d->clock_error = json_number_value(json_object_get(d->own, "clock_error"));
    d->node = calloc(d->torus.nodes, sizeof *d->node);
    if (d->node == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for the trace");
    for (uint32_t rank = 0; rank < d->torus.nodes; rank++)
        if (read_node(d, path, rank, json_array_get(nodes, rank), e) != 0)
            return -1;
    return 0;
}

int trace_data_read(struct trace_data *d, const char *path, struct error *e)
{
    json_error_t why;

    *d = (struct trace_data){.file = json_load_file(path, 0, &why)};
    if (d->file == NULL && why.line <= 0)
        return error_set(e, ERROR_IO, "%.200s cannot be read: %.160s", path, why.text);
    if (d->file == NULL)
        return error_set(e, ERROR_USAGE, "%.200s is not JSON: line %d: %.160s", path, why.line,
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
