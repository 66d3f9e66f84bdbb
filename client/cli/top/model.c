#include "client/cli/top/model.h"

#include <stdlib.h>
#include <string.h>

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
