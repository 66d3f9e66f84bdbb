#include "tests/unit/trace_fixture.h"

#include <inttypes.h>
#include <unistd.h>

#include "tests/support/cmocka.h"

#define INTERVALS TRACE_FIXTURE_INTERVALS
#define BUSY 153 /* of 255 */
#define SENT 1000000

static json_t *list_of(size_t count, json_int_t value)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        (void)json_array_append_new(list, json_integer(value));
    return list;
}

static json_t *make_node(const struct torus *t, uint32_t rank)
{
    const unsigned ports = torus_ports(t);
    const size_t places = INTERVALS * ports;
    json_t *neighbour = json_array(), *states = json_array();
    char name[32];

    (void)snprintf(name, sizeof name, "host%" PRIu32, rank);
    for (unsigned port = 0; port < ports; port++)
        (void)json_array_append_new(neighbour, json_integer(torus_neighbour(t, rank, port)));
    for (size_t i = 0; i < places; i++)
        for (unsigned s = 0; s < TORUS_TRACE_STATES; s++)
            (void)json_array_append_new(states, json_integer(s == TORUS_TRACE_LINK     ? BUSY
                                                             : s == TORUS_TRACE_OTHERS ? 255 - BUSY
                                                                                       : 0));
    json_t *o =
        json_pack("{s:i, s:s, s:f, s:f, s:f, s:b, s:f, s:i, s:o, s:o}", "rank", (int)rank, "name",
                  name, "began", 0.0, "ended", 1.0, "interval", 0.02, "aligned", 1, "clock_error",
                  1e-5, "ports", (int)ports, "neighbour", neighbour, "state", states);
    static const char *const by_port[] = {"received", "queue", "unacked", "resent"};
    static const char *const by_interval[] = {"used", "delayed", "writing"};
    (void)json_object_set_new(o, "sent", list_of(places, SENT));
    (void)json_object_set_new(o, "carried", list_of(places, SENT));
    (void)json_object_set_new(o, "loaded", list_of(places, BUSY));
    (void)json_object_set_new(o, "drained", list_of(places, 0));
    (void)json_object_set_new(o, "no_room", list_of(places, 0));
    for (size_t i = 0; i < sizeof by_port / sizeof by_port[0]; i++)
        (void)json_object_set_new(o, by_port[i], list_of(places, 0));
    for (size_t i = 0; i < sizeof by_interval / sizeof by_interval[0]; i++)
        (void)json_object_set_new(o, by_interval[i], list_of(INTERVALS, 0));
    (void)json_object_set_new(o, "events", json_array());
    return o;
}

json_t *trace_fixture_new(const char *dims)
{
    json_t *nodes = json_array(), *states = json_array();
    struct torus t;

    assert_int_equal(torus_parse(&t, dims, NULL), 0);
    for (uint32_t rank = 0; rank < t.nodes; rank++)
        (void)json_array_append_new(nodes, make_node(&t, rank));
    json_t *file =
        json_pack("{s:s, s:[], s:{s:i, s:s, s:s, s:f, s:f, s:{s:f, s:s}, s:o, s:o}}",
                  "displayTimeUnit", "ms", "traceEvents", "torusd", "version", 1, "dims", dims,
                  "id", "0-1-2", "seconds", 1.0, "clock_error", 1e-5, "run", "seconds", 0.9,
                  "operation", "exchange", "states", states, "nodes", nodes);
    assert_non_null(file);
    return file;
}

json_t *trace_fixture_node(json_t *file, uint32_t rank)
{
    json_t *node = json_array_get(json_object_get(json_object_get(file, "torusd"), "nodes"), rank);

    assert_non_null(node);
    return node;
}

static unsigned ports_of(json_t *node)
{
    return (unsigned)json_integer_value(json_object_get(node, "ports"));
}

void trace_fixture_wait(json_t *file, uint32_t rank, unsigned port, enum torus_trace_state state,
                        double part)
{
    json_t *node = trace_fixture_node(file, rank), *list = json_object_get(node, "state");

    for (size_t i = 0; i < INTERVALS; i++) {
        size_t at = (i * ports_of(node) + port) * TORUS_TRACE_STATES;
        for (unsigned s = 0; s < TORUS_TRACE_STATES; s++) {
            double time = (double)json_integer_value(json_array_get(list, at + s)) * (1 - part) +
                          (s == (unsigned)state ? 255 * part : 0);
            (void)json_array_set_new(list, at + s, json_integer((json_int_t)time));
        }
    }
}

void trace_fixture_load(json_t *file, uint32_t rank, unsigned port, double loaded, double drained,
                        json_int_t carried)
{
    json_t *node = trace_fixture_node(file, rank);

    for (size_t i = 0; i < INTERVALS; i++) {
        const size_t at = i * ports_of(node) + port;
        trace_fixture_set(file, rank, "loaded", at, (json_int_t)(255 * loaded));
        trace_fixture_set(file, rank, "drained", at, (json_int_t)(255 * drained));
        trace_fixture_set(file, rank, "carried", at, carried);
    }
}

void trace_fixture_slow(json_t *file, uint32_t rank, unsigned port)
{
    trace_fixture_wait(file, rank, port, TORUS_TRACE_LINK, 1);
    trace_fixture_load(file, rank, port, 1, 0, SENT);
}

void trace_fixture_scale(json_t *file, uint32_t rank, unsigned port, const char *member, double by)
{
    json_t *node = trace_fixture_node(file, rank), *list = json_object_get(node, member);

    for (size_t i = 0; i < INTERVALS; i++) {
        size_t at = i * ports_of(node) + port;
        (void)json_array_set_new(
            list, at,
            json_integer((json_int_t)((double)json_integer_value(json_array_get(list, at)) * by)));
    }
}

void trace_fixture_set(json_t *file, uint32_t rank, const char *member, size_t index,
                       json_int_t value)
{
    json_t *list = json_object_get(trace_fixture_node(file, rank), member);

    assert_int_equal(json_array_set_new(list, index, json_integer(value)), 0);
}

void trace_fixture_add_event(json_t *file, uint32_t rank, double at, enum torus_trace_event kind,
                             json_int_t a, json_int_t b)
{
    json_t *events = json_object_get(trace_fixture_node(file, rank), "events");

    assert_int_equal(json_array_append_new(events, json_pack("[f, i, I, I]", at, (int)kind, a, b)),
                     0);
}

int trace_fixture_read(json_t *file, struct trace_data *d, struct error *e)
{
    char *text = json_dumps(file, JSON_COMPACT | JSON_REAL_PRECISION(12));
    const char *path;

    json_decref(file);
    assert_non_null(text);
    path = file_of(text, strlen(text));
    free(text);
    int r = trace_data_read(d, path, e);
    assert_int_equal(unlink(path), 0);
    return r;
}
