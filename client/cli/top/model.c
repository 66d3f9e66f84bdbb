#include "client/cli/top/model.h"

#include <stdlib.h>
#include <string.h>

static void forget_survey(struct top_model *m)
{
    free(m->ends);
    free(m->faults);
    m->ends = NULL;
    m->faults = NULL;
    m->fault_count = 0;
    all_nodes_free(&m->now);
}

void top_model_free(struct top_model *m)
{
    forget_survey(m);
    free(m->known);
    *m = (struct top_model){0};
}

static void fill_ends(struct top_model *m, const struct link_end *before, uint32_t rank,
                      double elapsed)
{
    const unsigned ports = torus_ports(&m->now.torus);

    if (before != NULL)
        before += (size_t)rank * ports;
    link_ends_fill(&m->ends[(size_t)rank * ports], &m->now, rank, before, elapsed);
}

static bool is_reachable(const struct top_model *m, uint32_t rank)
{
    return m->now.state->nodes[rank]->outcome != TORUS_SURVEY_UNREACHABLE;
}

/* Counts nodes and links, and lists faults: each link once, and none of a node that is down. */
static void find_faults(struct top_model *m)
{
    const struct torus *t = &m->now.torus;
    size_t n = 0;

    m->answered = m->links = m->links_up = 0;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        if (all_nodes_answered(&m->now, rank))
            m->answered++;
        else
            m->faults[n++] = (struct top_fault){.kind = TOP_FAULT_NODE, .node = rank};
    }
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        const struct torus_status *s = m->now.state->nodes[rank]->status;
        for (size_t i = 0; s != NULL && i < s->link_fault_count; i++)
            m->faults[n++] = (struct top_fault){TOP_FAULT_CABLE, rank, s->link_faults[i]->port,
                                                s->link_faults[i]->text};
        for (unsigned port = 0; port < torus_ports(t); port++) {
            const struct top_link l = top_model_link(m, rank, port);
            if (l.state == TOP_LINK_NONE || !torus_port_dials(t, rank, port))
                continue;
            m->links++;
            m->links_up += l.state == TOP_LINK_UP;
            if (l.state == TOP_LINK_DOWN && is_reachable(m, rank) && is_reachable(m, l.neighbour))
                m->faults[n++] =
                    (struct top_fault){.kind = TOP_FAULT_LINK, .node = rank, .port = port};
        }
    }
    m->fault_count = n;
}

static size_t most_faults(const struct all_nodes *c)
{
    size_t n = c->torus.nodes * (1 + (size_t)torus_ports(&c->torus));

    for (uint32_t rank = 0; rank < c->torus.nodes; rank++)
        if (c->state->nodes[rank]->status != NULL)
            n += c->state->nodes[rank]->status->link_fault_count;
    return n;
}

/* Remembers what a node has answered, and whether its daemon has been restarted since its last answer. */
static void note_node(struct top_model *m, uint32_t rank)
{
    const struct torus_node_answer *n = m->now.state->nodes[rank];
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

/* Fills the model from m->now and what was known before. Returns 0, or -1 if memory is short. */
static int fill(struct top_model *m, const struct all_nodes *before, const struct link_end *ends,
                double seconds)
{
    const uint32_t nodes = m->now.torus.nodes;
    double *elapsed = calloc(nodes, sizeof *elapsed);

    m->ends = calloc((size_t)nodes * torus_ports(&m->now.torus) + 1, sizeof *m->ends);
    m->faults = calloc(most_faults(&m->now), sizeof *m->faults);
    if (m->known == NULL)
        m->known = calloc(nodes, sizeof *m->known);
    if (elapsed == NULL || m->ends == NULL || m->faults == NULL || m->known == NULL) {
        free(elapsed);
        return -1;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        elapsed[rank] = link_ends_elapsed(&m->now, before, rank);
        fill_ends(m, ends, rank, elapsed[rank]);
        note_node(m, rank);
    }
    link_capacity_update(&m->capacity, &m->now, m->ends);
    find_faults(m);
    runs_fill(&m->runs, &m->now, before, elapsed, seconds);
    m->surveys++;
    free(elapsed);
    return 0;
}

int top_model_take(struct top_model *m, struct all_nodes *survey, double seconds)
{
    if (m->now.state != NULL && !torus_equal(&m->now.torus, &survey->torus))
        top_model_free(m);
    struct all_nodes before = m->now;
    struct link_end *ends = m->ends;
    struct top_fault *faults = m->faults;

    m->now = *survey;
    *survey = (struct all_nodes){0};
    const int result = fill(m, &before, ends, seconds);
    all_nodes_free(&before);
    free(ends);
    free(faults);
    if (result != 0)
        top_model_free(m);
    return result;
}

/* The load of a direction, from what its two ends have counted. */
static double load_of(const struct top_model *m, double sent, double received)
{
    const double rate = sent > received ? sent : received;

    return rate < 0 ? -1 : m->capacity.value > 0 ? rate / m->capacity.value : 0;
}

struct top_link top_model_link(const struct top_model *m, uint32_t rank, unsigned port)
{
    const struct torus *t = &m->now.torus;
    const unsigned ports = torus_ports(t);
    struct top_link l = {.neighbour = TORUS_NO_NODE, .away = -1, .towards = -1};

    if (rank < t->nodes && port < ports)
        l.neighbour = torus_neighbour(t, rank, port);
    if (l.neighbour == TORUS_NO_NODE)
        return l;
    l.port_there = torus_port_opposite(t, port);
    l.here = &m->ends[(size_t)rank * ports + port];
    l.there = &m->ends[(size_t)l.neighbour * ports + l.port_there];
    const struct torus_link *a = l.here->link, *b = l.there->link;
    if (a == NULL && b == NULL)
        l.state = TOP_LINK_UNKNOWN;
    else if ((a != NULL && a->state != TORUS_LINK_UP) || (b != NULL && b->state != TORUS_LINK_UP))
        l.state = TOP_LINK_DOWN;
    else
        l.state = TOP_LINK_UP;
    l.away = load_of(m, l.here->sent, l.there->received);
    l.towards = load_of(m, l.there->sent, l.here->received);
    return l;
}

double top_link_load(const struct top_link *l)
{
    return l->away > l->towards ? l->away : l->towards;
}

const char *top_model_host(const struct top_model *m, uint32_t rank)
{
    return m->known != NULL && rank < m->now.torus.nodes ? m->known[rank].host : "";
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

static const char *reason_of(const struct link_end *e)
{
    if (e->link == NULL || e->link->state == TORUS_LINK_UP)
        return "";
    return e->link->reason[0] != '\0' ? e->link->reason : torus_link_state_name(e->link->state);
}

void top_model_fault_text(const struct top_model *m, const struct top_fault *f, char *out,
                          size_t size)
{
    const struct torus *t = &m->now.torus;
    char name[TOP_NAME_SIZE], port[TORUS_PORT_NAME_SIZE], port_there[TORUS_PORT_NAME_SIZE];

    (void)top_model_name(m, f->node, name, sizeof name);
    if (f->kind == TOP_FAULT_NODE) {
        (void)snprintf(out, size, "%s %s", name, all_nodes_missing(&m->now, f->node));
        return;
    }
    if (f->kind == TOP_FAULT_CABLE) {
        (void)snprintf(out, size, "cable of %s: %s", name, f->text);
        return;
    }
    const struct top_link l = top_model_link(m, f->node, f->port);
    const char *reason = reason_of(l.here);
    if (reason[0] == '\0')
        reason = reason_of(l.there);
    (void)snprintf(out, size, "link %u:%s %s - %u:%s %s: %s", f->node,
                   torus_port_name(t, f->node, f->port, port), top_model_host(m, f->node),
                   l.neighbour, torus_port_name(t, l.neighbour, l.port_there, port_there),
                   top_model_host(m, l.neighbour), reason);
}

void top_model_node_rates(const struct top_model *m, uint32_t rank, double *sent, double *received)
{
    *sent = *received = -1;
    for (unsigned port = 0; port < torus_ports(&m->now.torus); port++) {
        const struct top_link l = top_model_link(m, rank, port);
        if (l.state == TOP_LINK_NONE)
            continue;
        if (l.here->sent >= 0)
            *sent = (*sent > 0 ? *sent : 0) + l.here->sent;
        if (l.here->received >= 0)
            *received = (*received > 0 ? *received : 0) + l.here->received;
    }
}
