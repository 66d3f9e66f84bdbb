#include "client/cli/top/model_value.h"

#include <time.h>

#include "client/cli/survey/all_nodes_report.h"
#include "client/cli/terminal/json.h"

static json_t *rate_value(double rate)
{
    return rate < 0 ? json_null() : json_real(rate);
}

static json_t *time_value(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return json_real((double)now.tv_sec + (double)(now.tv_nsec / 1000000) / 1000);
}

json_t *top_error_value(const struct torus_error *e)
{
    return json_pack("{s:o, s:{s:s, s:s}}", "time", time_value(), "error", "code",
                     torus_error_name(e->code), "text", e->text);
}

static int add_link(json_t *links, const struct top_model *m, uint32_t rank, unsigned port)
{
    const struct observed_link l = observed_link(&m->seen, rank, port);

    if (l.state == LINK_NONE || l.here->link == NULL)
        return 0;
    json_t *o = link_value(l.here->link);
    int r = json_object_set_new(o, "tx_bytes_per_second", rate_value(l.here->sent));
    r |= json_object_set_new(o, "rx_bytes_per_second", rate_value(l.here->received));
    r |= json_object_set_new(o, "retransmits_per_second", rate_value(l.here->resent));
    r |= json_object_set_new(o, "tx_load",
                             m->seen.capacity.value > 0 ? rate_value(l.away) : json_null());
    r |= json_object_set_new(o, "rx_load",
                             m->seen.capacity.value > 0 ? rate_value(l.towards) : json_null());
    return r | json_array_append_new(links, o);
}

static int add_nodes(json_t *o, const struct top_model *m)
{
    json_t *nodes = json_array();
    int r = 0;

    for (uint32_t rank = 0; rank < m->seen.now.torus.nodes; rank++) {
        json_t *node = json_object(), *links = json_array();
        const struct torus_status *s = m->seen.now.state->nodes[rank]->status;
        r |= all_nodes_set_node(node, &m->seen.now, rank);
        r |= json_object_set_new(node, "uptime_seconds",
                                 s != NULL ? json_real((double)s->uptime_ms / 1000) : json_null());
        r |= json_object_set_new(node, "memory_used_bytes",
                                 s != NULL ? json_count(s->memory_used) : json_null());
        for (unsigned port = 0; port < torus_ports(&m->seen.now.torus); port++)
            r |= add_link(links, m, rank, port);
        r |= json_object_set_new(node, "links", links);
        r |= json_array_append_new(nodes, node);
    }
    return r | json_object_set_new(o, "nodes", nodes);
}

static json_t *exchange_value(const struct run *run)
{
    json_t *o = json_object(), *states = json_object();
    int r = 0;

    for (unsigned i = 0; i < RUN_STATES; i++)
        if (run->states[i] > 0)
            r |= json_object_set_new(states, torus_state_name((enum torus_state)i),
                                     json_integer(run->states[i]));
    r |= json_object_set_new(o, "id", json_string(run->id));
    r |= json_object_set_new(o, "algorithm", json_string(run->what));
    r |= json_object_set_new(o, "coordinator", json_integer(run->root));
    r |= json_object_set_new(o, "state_counts", states);
    r |= json_object_set_new(o, "ended", json_boolean(run->ended));
    r |= json_object_set_new(o, "age_seconds", json_real((double)run->age_ms / 1000));
    r |= json_object_set_new(o, "round", json_count(run->round));
    r |= json_object_set_new(o, "rounds", json_count(run->rounds));
    r |= json_object_set_new(o, "done_bytes", json_count(run->done));
    r |= json_object_set_new(o, "total_bytes", json_known(run->total));
    r |= json_object_set_new(o, "part", rate_value(run->part));
    r |= json_object_set_new(o, "bytes_per_second", rate_value(run->rate));
    r |= json_object_set_new(o, "left_seconds", rate_value(run->left));
    r |= json_object_set_new(o, "reason", json_string(run->reason));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static json_t *group_value(const struct run *run)
{
    return json_pack("{s:s, s:i, s:i, s:s, s:s, s:o, s:o, s:o, s:o}", "group", run->id,
                     "node_count", (int)run->nodes, "open", (int)run->open, "missing", run->missing,
                     "avoids", run->avoids, "calls", json_count(run->calls), "calls_done",
                     json_count(run->calls_done), "calls_per_second", rate_value(run->call_rate),
                     "bytes_per_second", rate_value(run->rate));
}

static json_t *copy_value(const struct run *run)
{
    return json_pack("{s:s, s:i, s:s, s:s, s:i, s:o, s:o, s:s, s:o, s:o, s:o}", "id", run->id,
                     "asker", (int)run->root, "target", run->what, "phase",
                     torus_copy_phase_name(run->phase), "node_count", (int)run->nodes, "bytes",
                     json_count(run->done), "bytes_of", json_known(run->total), "waits_for",
                     run->waits_for, "part", rate_value(run->part), "bytes_per_second",
                     rate_value(run->rate), "left_seconds", rate_value(run->left));
}

static int add_runs(json_t *o, const struct top_model *m)
{
    static json_t *(*const value[])(const struct run *) = {
        [RUN_EXCHANGE] = exchange_value, [RUN_GROUP] = group_value, [RUN_COPY] = copy_value};
    json_t *list[] = {
        [RUN_EXCHANGE] = json_array(), [RUN_GROUP] = json_array(), [RUN_COPY] = json_array()};
    int r = 0;

    for (size_t i = 0; i < m->seen.runs.count; i++) {
        const enum run_kind kind = m->seen.runs.run[i].kind;
        r |= json_array_append_new(list[kind], value[kind](&m->seen.runs.run[i]));
    }
    r |= json_object_set_new(o, "exchanges", list[RUN_EXCHANGE]);
    r |= json_object_set_new(o, "groups", list[RUN_GROUP]);
    return r | json_object_set_new(o, "copies", list[RUN_COPY]);
}

static int add_faults(json_t *o, const struct top_model *m)
{
    static const char *const kinds[] = {
        [FAULT_NODE] = "node", [FAULT_LINK] = "link", [FAULT_CABLE] = "cable"};
    json_t *faults = json_array();
    int r = 0;

    for (size_t i = 0; i < m->seen.fault_count; i++) {
        const struct fault *f = &m->seen.faults[i];
        char text[512], port[TORUS_PORT_NAME_SIZE];
        top_model_fault_text(m, f, text, sizeof text);
        json_t *fault = json_pack("{s:s, s:i, s:s}", "kind", kinds[f->kind], "node", (int)f->node,
                                  "text", text);
        if (f->kind == FAULT_LINK)
            r |= json_object_set_new(
                fault, "port",
                json_string(torus_port_name(&m->seen.now.torus, f->node, f->port, port)));
        r |= json_array_append_new(faults, fault);
    }
    return r | json_object_set_new(o, "faults", faults);
}

json_t *top_model_value(const struct top_model *m)
{
    json_t *o = json_object();
    int r = json_object_set_new(o, "time", time_value());

    r |= json_set_torus(o, &m->seen.now.torus);
    r |= json_object_set_new(o, "asked", json_integer(m->seen.now.asker));
    r |= json_object_set_new(o, "node_count", json_integer(m->seen.now.torus.nodes));
    r |= json_object_set_new(o, "answered", json_count(m->seen.answered));
    r |= json_object_set_new(o, "link_count", json_count(m->seen.links));
    r |= json_object_set_new(o, "links_up", json_count(m->seen.links_up));
    r |= json_object_set_new(o, "full_bytes_per_second",
                             m->seen.capacity.value > 0 ? json_real(m->seen.capacity.value)
                                                        : json_null());
    r |= json_object_set_new(o, "full_is_nominal", json_boolean(m->seen.capacity.nominal));
    r |=
        json_object_set_new(o, "took_seconds", json_real((double)m->seen.now.state->took_us / 1e6));
    r |= json_object_set_new(o, "restarts", json_count(m->restarts));
    r |= add_nodes(o, m) | add_runs(o, m) | add_faults(o, m);
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}
