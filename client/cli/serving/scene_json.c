#include "client/cli/serving/scene_json.h"

#include <stdlib.h>

#include "client/cli/serving/faults.h"
#include "client/cli/terminal/json.h"
#include "client/cli/web/torus_json.h"
#include "proto/text.h"

static json_t *text_value(const char *text)
{
    char clean[256];

    return json_string(text_printable(clean, sizeof clean, text));
}

static json_t *rate_value(double rate)
{
    return rate < 0 ? json_null() : json_integer((json_int_t)(rate < 1e18 ? rate : 1e18));
}

/* The number of each channel in the order of torus_json(), by rank and port. NULL if memory is short. */
static uint32_t *number_channels(const struct scene *s)
{
    const size_t ends = (size_t)s->seen.now.torus.nodes * s->seen.ports;
    uint32_t *number = calloc(ends + 1, sizeof *number), next = 0;

    for (size_t i = 0; number != NULL && i < ends; i++)
        if (torus_neighbour(&s->seen.now.torus, (uint32_t)(i / s->seen.ports),
                            (unsigned)(i % s->seen.ports)) != TORUS_NO_NODE)
            number[i] = next++;
    return number;
}

static json_t *opposites_value(const struct scene *s)
{
    const struct torus *t = &s->seen.now.torus;
    uint32_t *number = number_channels(s);
    json_t *a = number != NULL ? json_array() : NULL;
    int r = 0;

    for (uint32_t rank = 0; a != NULL && rank < t->nodes; rank++)
        for (unsigned port = 0; port < s->seen.ports; port++) {
            const uint32_t next = torus_neighbour(t, rank, port);
            if (next != TORUS_NO_NODE)
                r |= json_array_append_new(
                    a, json_integer(
                           number[(size_t)next * s->seen.ports + torus_port_opposite(t, port)]));
        }
    free(number);
    if (r == 0)
        return a;
    json_decref(a);
    return NULL;
}

json_t *scene_torus_value(const struct scene *s, struct error *e)
{
    json_t *o = torus_json(&s->seen.now.torus, e);

    if (o != NULL && (json_object_set_new(o, "asker", json_integer(s->seen.now.asker)) |
                      json_object_set_new(o, "opposite", opposites_value(s))) != 0) {
        (void)error_set(e, ERROR_MEMORY, "out of memory");
        json_decref(o);
        return NULL;
    }
    return o;
}

static json_t *node_value(const struct scene *s, uint32_t rank)
{
    const struct torus_status *status = s->seen.now.state->nodes[rank]->status;
    json_t *a = json_array();
    int r = json_array_append_new(a, text_value(scene_name(s, rank)));

    r |= json_array_append_new(a, text_value(all_nodes_missing(&s->seen.now, rank)));
    if (status != NULL) {
        r |= json_array_append_new(a, text_value(status->version));
        r |= json_array_append_new(a, json_count(status->memory_used));
        r |= json_array_append_new(a, json_count(status->memory_budget));
        r |= json_array_append_new(a, json_count(status->uptime_ms / 1000));
    }
    if (r == 0)
        return a;
    json_decref(a);
    return NULL;
}

static json_t *end_value(const struct scene *s, uint32_t rank, unsigned port)
{
    const struct link_end *e = observed_end(&s->seen, rank, port);
    const struct torus_link *l = e->link;

    if (l == NULL)
        return json_null();
    json_t *a = json_array();
    const bool up = observed_link(&s->seen, rank, port).state != LINK_DOWN;
    int r = json_array_append_new(a, json_boolean(up));
    r |= json_array_append_new(a, rate_value(e->sent));
    r |= json_array_append_new(a, rate_value(e->received));
    r |= json_array_append_new(a, json_count(l->queue_bytes));
    r |= json_array_append_new(a, json_count(l->unacked_bytes));
    r |= json_array_append_new(a, json_integer(l->retransmits));
    r |= json_array_append_new(a, rate_value(e->resent));
    r |= json_array_append_new(a, json_known(l->rtt_us));
    r |= json_array_append_new(a, json_known(l->mtu));
    if (!up) {
        r |= json_array_append_new(a, json_string(torus_link_state_name(l->state)));
        r |= json_array_append_new(a, text_value(l->reason));
        r |= json_array_append_new(a, text_value(l->interface));
    }
    if (r == 0)
        return a;
    json_decref(a);
    return NULL;
}

static json_t *run_value(const struct scene *s, const struct run *run)
{
    char text[256];
    json_t *o = json_object();
    int r = json_object_set_new(o, "kind", json_string(run_kind_name(run->kind)));

    r |= json_object_set_new(o, "id", text_value(run->id));
    r |= json_object_set_new(o, "what", text_value(run->what));
    r |= json_object_set_new(o, "state", json_string(run_state(run, text, sizeof text)));
    r |= json_object_set_new(o, "reason", json_string(run_reason(run, text, sizeof text)));
    r |= json_object_set_new(o, "failed",
                             json_boolean(run_has_failed(run) && !run_was_cancelled(run)));
    r |= json_object_set_new(o, "ended", json_boolean(run->ended));
    r |= json_object_set_new(o, "node_count", json_integer(run->nodes));
    r |= json_object_set_new(o, "root",
                             run->root != TORUS_RANK_NONE ? text_value(scene_name(s, run->root))
                                                          : json_null());
    r |= json_object_set_new(o, "age", json_number((double)run->age_ms / 1000));
    r |= json_object_set_new(o, "done", json_count(run->done));
    r |= json_object_set_new(o, "total", json_count(run->total));
    r |= json_object_set_new(o, "round", json_count(run->round));
    r |= json_object_set_new(o, "rounds", json_count(run->rounds));
    r |= json_object_set_new(o, "calls", json_count(run->calls));
    r |= json_object_set_new(o, "calls_done", json_count(run->calls_done));
    r |= json_object_set_new(o, "part", run->part < 0 ? json_null() : json_real(run->part));
    r |= json_object_set_new(o, "rate", rate_value(run->rate));
    r |= json_object_set_new(o, "left", run->left < 0 ? json_null() : json_number(run->left));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

/* Adds the channels, in the order of torus_json(). */
static int add_ends(json_t *o, const struct scene *s)
{
    const struct torus *t = &s->seen.now.torus;
    json_t *ends = json_array();
    int r = 0;

    for (uint32_t rank = 0; rank < t->nodes; rank++)
        for (unsigned port = 0; port < s->seen.ports; port++)
            if (torus_neighbour(t, rank, port) != TORUS_NO_NODE)
                r |= json_array_append_new(ends, end_value(s, rank, port));
    return r | json_object_set_new(o, "end", ends);
}

json_t *scene_state_value(const struct scene *s, uint64_t at_ms)
{
    json_t *o = json_object(), *nodes = json_array(), *runs = json_array();
    const size_t faults = s->seen.fault_count;
    int r = add_ends(o, s);

    for (uint32_t rank = 0; rank < s->seen.now.torus.nodes; rank++)
        r |= json_array_append_new(nodes, node_value(s, rank));
    for (size_t i = 0; i < s->seen.runs.count; i++)
        r |= json_array_append_new(runs, run_value(s, &s->seen.runs.run[i]));
    r |= json_object_set_new(o, "at", json_count(at_ms));
    r |= json_object_set_new(o, "took", json_real((double)s->seen.now.state->took_us / 1e6));
    r |= json_object_set_new(o, "capacity",
                             s->seen.capacity.value > 0 ? json_number(s->seen.capacity.value)
                                                        : json_null());
    r |= json_object_set_new(o, "nominal", json_boolean(s->seen.capacity.nominal));
    r |= json_object_set_new(o, "node", nodes);
    r |= json_object_set_new(o, "links", json_count(s->seen.links));
    r |= json_object_set_new(o, "links_up", json_count(s->seen.links_up));
    r |= json_object_set_new(o, "faults", faults_value(s));
    r |=
        json_object_set_new(o, "more", json_count(faults > FAULTS_MOST ? faults - FAULTS_MOST : 0));
    r |= json_object_set_new(o, "runs", runs);
    r |= json_object_set_new(o, "left_out", json_count(s->seen.runs.left_out));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *points_value(const double *points)
{
    json_t *a = json_array();

    for (size_t i = 0; i < HISTORY_POINTS; i++)
        if (json_array_append_new(a, rate_value(points[i])) != 0) {
            json_decref(a);
            return NULL;
        }
    return a;
}

static int add_series(json_t *list, const struct scene *s, const size_t *channels, size_t count)
{
    static struct history_points points;
    json_t *o = json_object();

    history_reduce(&s->history, channels, count, &points);
    int r = json_object_set_new(o, "mean", points_value(points.mean));
    r |= json_object_set_new(o, "peak", points_value(points.peak));
    return r | json_array_append_new(list, o);
}

/* Adds what the ports from..to - 1 of a node send, and what they receive. */
static int add_ports(json_t *list, const struct scene *s, uint32_t rank, unsigned from, unsigned to)
{
    const struct torus *t = &s->seen.now.torus;
    size_t sent[TORUS_MAX_PORTS], received[TORUS_MAX_PORTS], count = 0;

    for (unsigned port = from; port < to; port++) {
        const uint32_t next = torus_neighbour(t, rank, port);
        if (next == TORUS_NO_NODE)
            continue;
        sent[count] = (size_t)rank * s->seen.ports + port;
        received[count++] = (size_t)next * s->seen.ports + torus_port_opposite(t, port);
    }
    return add_series(list, s, sent, count) | add_series(list, s, received, count);
}

json_t *scene_history_value(const struct scene *s, uint32_t rank, uint32_t port)
{
    json_t *o = json_object(), *list = json_array();
    const size_t all = s->history.channels - 1;
    int r;

    if (s->seen.now.state == NULL || (rank != TORUS_RANK_NONE && rank >= s->seen.now.torus.nodes) ||
        (port != TORUS_RANK_NONE && port >= s->seen.ports))
        r = -1;
    else if (rank == TORUS_RANK_NONE)
        r = add_series(list, s, &all, 1);
    else if (port == TORUS_RANK_NONE)
        r = add_ports(list, s, rank, 0, s->seen.ports);
    else
        r = add_ports(list, s, rank, port, port + 1);
    r |= json_object_set_new(o, "step", json_integer(HISTORY_STEP));
    r |= json_object_set_new(o, "series", list);
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}
