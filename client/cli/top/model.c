#include "client/cli/top/model.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/survey/all_nodes_report.h"
#include "client/cli/terminal/json.h"

void top_model_free(struct top_model *m)
{
    observed_free(&m->seen);
    free(m->known);
    *m = (struct top_model){0};
}

/* Remembers what a node has answered, and whether its daemon has been restarted since its last answer. */
static void note_node(struct top_model *m, uint32_t rank)
{
    const struct torus_node_answer *n = m->seen.now.state->nodes[rank];
    struct top_known *k = &m->known[rank];

    if (n->host[0] != '\0')
        (void)snprintf(k->host, sizeof k->host, "%s", n->host);
    if (n->status == NULL)
        return;
    if (k->uptime_ms > 0 && (n->status->pid != k->pid || n->status->uptime_ms < k->uptime_ms)) {
        m->restarts++;
        m->restarted = rank;
    }
    k->pid = n->status->pid;
    k->uptime_ms = n->status->uptime_ms;
}

/* Remembers what all links carry together, if any end knows its rate. */
static void note_rate(struct top_model *m, double seconds)
{
    double sum = -1;

    for (size_t i = 0; i < (size_t)m->seen.now.torus.nodes * m->seen.ports; i++)
        if (m->seen.ends[i].link != NULL && m->seen.ends[i].sent >= 0)
            sum = (sum > 0 ? sum : 0) + m->seen.ends[i].sent;
    if (sum >= 0)
        m->point[m->points++ % TOP_POINTS] = (struct top_point){seconds, sum};
}

double top_model_newest(const struct top_model *m)
{
    return m->points > 0 ? m->point[(m->points - 1) % TOP_POINTS].seconds : -1;
}

double top_model_rate_at(const struct top_model *m, double seconds, double most)
{
    const uint64_t count = m->points < TOP_POINTS ? m->points : TOP_POINTS;
    double rate = -1;

    for (uint64_t i = 1; i <= count; i++) {
        const struct top_point *p = &m->point[(m->points - i) % TOP_POINTS];
        const double apart = p->seconds > seconds ? p->seconds - seconds : seconds - p->seconds;
        if (apart <= most) {
            most = apart;
            rate = p->rate;
        }
    }
    return rate;
}

int top_model_take(struct top_model *m, struct all_nodes *survey, double seconds)
{
    if (observed_is_new(&m->seen, survey)) {
        top_model_free(m);
        m->known = calloc(survey->torus.nodes, sizeof *m->known);
    }
    if (observed_take(&m->seen, survey, 0, seconds) != 0 || m->known == NULL) {
        top_model_free(m);
        return -1;
    }
    for (uint32_t rank = 0; rank < m->seen.now.torus.nodes; rank++)
        note_node(m, rank);
    note_rate(m, seconds);
    m->surveys++;
    return 0;
}

const char *top_model_host(const struct top_model *m, uint32_t rank)
{
    return m->known != NULL && rank < m->seen.now.torus.nodes ? m->known[rank].host : "";
}

const char *top_model_name(const struct top_model *m, uint32_t rank, char *out, size_t size)
{
    const char *host = top_model_host(m, rank);

    if (host[0] != '\0')
        (void)snprintf(out, size, "%s (node %u)", host, rank);
    else
        (void)snprintf(out, size, "node %u", rank);
    return out;
}

void top_model_fault_text(const struct top_model *m, const struct fault *f, char *out, size_t size)
{
    const struct torus *t = &m->seen.now.torus;
    char name[TOP_NAME_SIZE], port[TORUS_PORT_NAME_SIZE], port_there[TORUS_PORT_NAME_SIZE];

    (void)top_model_name(m, f->node, name, sizeof name);
    if (f->kind == FAULT_NODE) {
        (void)snprintf(out, size, "%s %s", name, all_nodes_missing(&m->seen.now, f->node));
        return;
    }
    if (f->kind == FAULT_CABLE) {
        (void)snprintf(out, size, "cable of %s: %s", name, f->text);
        return;
    }
    const struct observed_link l = observed_link(&m->seen, f->node, f->port);
    (void)snprintf(out, size, "link %u:%s %s - %u:%s %s: %s", f->node,
                   torus_port_name(t, f->node, f->port, port), top_model_host(m, f->node),
                   l.neighbour, torus_port_name(t, l.neighbour, l.port_there, port_there),
                   top_model_host(m, l.neighbour), observed_reason(&l));
}

void top_model_node_rates(const struct top_model *m, uint32_t rank, double *sent, double *received)
{
    *sent = *received = -1;
    for (unsigned port = 0; port < m->seen.ports; port++) {
        const struct observed_link l = observed_link(&m->seen, rank, port);
        if (l.state == LINK_NONE)
            continue;
        if (l.here->sent >= 0)
            *sent = (*sent > 0 ? *sent : 0) + l.here->sent;
        if (l.here->received >= 0)
            *received = (*received > 0 ? *received : 0) + l.here->received;
    }
}

/* ---- Lines of JSON --------------------------------------------------------------------------- */

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
    const bool known = m->seen.capacity.value > 0;
    json_t *o = link_value(l.here->link);
    int r = json_object_update_new(
        o, json_pack("{s:o, s:o, s:o, s:o, s:o}", "tx_bytes_per_second", rate_value(l.here->sent),
                     "rx_bytes_per_second", rate_value(l.here->received), "retransmits_per_second",
                     rate_value(l.here->resent), "tx_load", rate_value(known ? l.away : -1),
                     "rx_load", rate_value(known ? l.towards : -1)));
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
    json_t *states = json_object();
    int r = 0;

    for (unsigned i = 0; i < RUN_STATES; i++)
        if (run->states[i] > 0)
            r |= json_object_set_new(states, torus_state_name((enum torus_state)i),
                                     json_integer(run->states[i]));
    json_t *o = json_pack("{s:s, s:s, s:I, s:o, s:b, s:f, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s}",
                          "id", run->id, "algorithm", run->what, "coordinator",
                          (json_int_t)run->root, "state_counts", states, "ended", (int)run->ended,
                          "age_seconds", (double)run->age_ms / 1000, "round",
                          json_count(run->round), "rounds", json_count(run->rounds), "done_bytes",
                          json_count(run->done), "total_bytes", json_known(run->total), "part",
                          rate_value(run->part), "bytes_per_second", rate_value(run->rate),
                          "left_seconds", rate_value(run->left), "reason", run->reason);
    return json_checked(o, r);
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
    const struct observed *seen = &m->seen;
    json_t *o = json_pack("{s:o}", "time", time_value());
    int r = json_set_torus(o, &seen->now.torus);

    r |= json_object_update_new(
        o,
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o, s:b, s:f, s:o}", "asked",
                  (json_int_t)seen->now.initiator, "node_count", (json_int_t)seen->now.torus.nodes,
                  "answered", json_count(seen->answered), "link_count", json_count(seen->links),
                  "links_up", json_count(seen->links_up), "full_bytes_per_second",
                  seen->capacity.value > 0 ? json_real(seen->capacity.value) : json_null(),
                  "full_is_nominal", (int)seen->capacity.nominal, "took_seconds",
                  (double)seen->now.state->took_us / 1e6, "restarts", json_count(m->restarts)));
    r |= add_nodes(o, m) | add_runs(o, m) | add_faults(o, m);
    return json_checked(o, r);
}
