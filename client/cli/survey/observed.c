#include "client/cli/survey/observed.h"

#include <stdlib.h>

void observed_free(struct observed *o)
{
    free(o->ends);
    free(o->faults);
    all_nodes_free(&o->now);
    *o = (struct observed){0};
}

bool observed_is_new(const struct observed *o, const struct all_nodes *survey)
{
    return o->now.state == NULL || !torus_equal(&o->now.torus, &survey->torus);
}

static bool is_reachable(const struct observed *o, uint32_t rank)
{
    return o->now.state->nodes[rank]->outcome != TORUS_SURVEY_UNREACHABLE;
}

static void add(struct observed *o, struct fault fault)
{
    o->faults[o->fault_count++] = fault;
}

static void find_faults_of(struct observed *o, uint32_t rank)
{
    const struct torus *t = &o->now.torus;
    const struct torus_status *s = o->now.state->nodes[rank]->status;

    for (size_t i = 0; s != NULL && i < s->link_fault_count; i++)
        if (s->link_faults[i]->port < o->ports)
            add(o, (struct fault){FAULT_CABLE, rank, s->link_faults[i]->port,
                                  s->link_faults[i]->text});
    for (unsigned port = 0; port < o->ports; port++) {
        const struct observed_link l = observed_link(o, rank, port);
        if (l.state == LINK_NONE || !torus_port_dials(t, rank, port))
            continue;
        o->links++;
        o->links_up += l.state == LINK_UP;
        if (l.state == LINK_DOWN && is_reachable(o, rank) && is_reachable(o, l.neighbour))
            add(o, (struct fault){.kind = FAULT_LINK, .node = rank, .port = port});
    }
}

/* Counts nodes and links, and lists faults: each link once, and none of a node that is down. */
static void find_faults(struct observed *o)
{
    for (uint32_t rank = 0; rank < o->now.torus.nodes; rank++) {
        if (all_nodes_answered(&o->now, rank))
            o->answered++;
        else
            add(o, (struct fault){.kind = FAULT_NODE, .node = rank});
    }
    for (uint32_t rank = 0; rank < o->now.torus.nodes; rank++)
        find_faults_of(o, rank);
}

static size_t most_faults(const struct observed *o)
{
    size_t n = o->now.torus.nodes * (1 + (size_t)o->ports);

    for (uint32_t rank = 0; rank < o->now.torus.nodes; rank++)
        if (o->now.state->nodes[rank]->status != NULL)
            n += o->now.state->nodes[rank]->status->link_fault_count;
    return n;
}

/* Fills what follows from o->now and from the observation before. Returns 0, or -1 if memory is short. */
static int fill(struct observed *o, const struct observed *before, double longest_gap,
                double seconds)
{
    const uint32_t nodes = o->now.torus.nodes;
    double *elapsed = calloc(nodes, sizeof *elapsed);

    o->ends = calloc((size_t)nodes * o->ports + 1, sizeof *o->ends);
    o->faults = calloc(most_faults(o), sizeof *o->faults);
    if (elapsed == NULL || o->ends == NULL || o->faults == NULL) {
        free(elapsed);
        return -1;
    }
    for (uint32_t rank = 0; rank < nodes; rank++) {
        const size_t first = (size_t)rank * o->ports;
        elapsed[rank] = link_ends_elapsed(&o->now, &before->now, rank);
        if (longest_gap > 0 && elapsed[rank] > longest_gap)
            elapsed[rank] = 0;
        link_ends_fill(&o->ends[first], &o->now, rank,
                       before->ends != NULL ? &before->ends[first] : NULL, elapsed[rank]);
    }
    link_capacity_update(&o->capacity, &o->now, o->ends);
    find_faults(o);
    runs_fill(&o->runs, &o->now, &before->now, elapsed, seconds);
    free(elapsed);
    return 0;
}

int observed_take(struct observed *o, struct all_nodes *survey, double longest_gap, double seconds)
{
    if (observed_is_new(o, survey))
        observed_free(o);
    struct observed before = *o;

    *o = (struct observed){.now = *survey,
                           .ports = torus_ports(&survey->torus),
                           .capacity = before.capacity,
                           .runs = before.runs};
    *survey = (struct all_nodes){0};
    const int result = fill(o, &before, longest_gap, seconds);
    observed_free(&before);
    if (result != 0)
        observed_free(o);
    return result;
}

const struct link_end *observed_end(const struct observed *o, uint32_t rank, unsigned port)
{
    return &o->ends[(size_t)rank * o->ports + port];
}

/* The load of a direction, from what its two ends have counted. */
static double load_of(const struct observed *o, double sent, double received)
{
    const double rate = sent > received ? sent : received;

    return rate < 0 ? -1 : o->capacity.value > 0 ? rate / o->capacity.value : 0;
}

struct observed_link observed_link(const struct observed *o, uint32_t rank, unsigned port)
{
    const struct torus *t = &o->now.torus;
    struct observed_link l = {.neighbour = TORUS_NO_NODE, .away = -1, .towards = -1};

    if (rank < t->nodes && port < o->ports)
        l.neighbour = torus_neighbour(t, rank, port);
    if (l.neighbour == TORUS_NO_NODE)
        return l;
    l.port_there = torus_port_opposite(t, port);
    l.here = observed_end(o, rank, port);
    l.there = observed_end(o, l.neighbour, l.port_there);
    const struct torus_link *a = l.here->link, *b = l.there->link;
    if (a == NULL && b == NULL)
        l.state = LINK_UNKNOWN;
    else if ((a != NULL && a->state != TORUS_LINK_UP) || (b != NULL && b->state != TORUS_LINK_UP))
        l.state = LINK_DOWN;
    else
        l.state = LINK_UP;
    l.away = load_of(o, l.here->sent, l.there->received);
    l.towards = load_of(o, l.there->sent, l.here->received);
    return l;
}

double observed_load(const struct observed_link *l)
{
    return l->away > l->towards ? l->away : l->towards;
}

static const char *reason_at(const struct link_end *e)
{
    if (e->link == NULL || e->link->state == TORUS_LINK_UP)
        return "";
    return e->link->reason[0] != '\0' ? e->link->reason : torus_link_state_name(e->link->state);
}

const char *observed_reason(const struct observed_link *l)
{
    const char *reason = reason_at(l->here);

    return reason[0] != '\0' ? reason : reason_at(l->there);
}
