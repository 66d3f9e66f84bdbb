#include "tests/sim/trace_checks.h"

#include <inttypes.h>

#define UNIT UINT64_C(1024) /* nanoseconds, of the times of states */

const struct trace *check_last_trace(struct sim *sim, uint32_t rank)
{
    const struct trace *t = exchanges_last_trace(sim_exchanges(sim, rank));

    if (t == NULL)
        sim_violated(sim, "traces", "node %" PRIu32 " has no trace", rank);
    return t;
}

uint32_t check_count_events(const struct trace *t, enum trace_event_kind kind)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < trace_kept(t); i++)
        count += trace_event_at(t, i)->kind == kind;
    return count;
}

static void check_port(struct sim *sim, uint32_t rank, const struct trace *t, unsigned port)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < t->intervals; i++) {
        const struct trace_port *p = &t->port[(size_t)i * t->ports + port];
        uint64_t sum = 0;
        for (unsigned state = 0; state < TRACE_STATES; state++)
            sum += p->state[state];
        if (sum * UNIT > t->interval)
            sim_violated(sim, "traces",
                         "node %" PRIu32 " port %u interval %" PRIu32
                         ": its states last for %" PRIu64 " of %" PRIu64 " ns",
                         rank, port, i, sum * UNIT, t->interval);
        all += sum * UNIT;
    }
    if (all > t->sampled - t->began)
        sim_violated(sim, "traces", "node %" PRIu32 " port %u: more time than has passed", rank,
                     port);
}

static void check_trace(struct sim *sim, uint32_t rank, const struct trace *t)
{
    uint64_t before = 0;

    if (t->intervals > TRACE_INTERVALS || t->ports != torus_ports(sim_torus(sim)) ||
        t->sampled < t->began || (t->ended != 0 && t->ended < t->began))
        sim_violated(sim, "traces", "node %" PRIu32 ": the trace of %s is out of bounds", rank,
                     t->id);
    for (uint32_t i = 0; i < trace_kept(t); i++) {
        const struct trace_event *event = trace_event_at(t, i);
        if (event->at < before || event->kind >= TRACE_EVENT_KINDS)
            sim_violated(sim, "traces", "node %" PRIu32 ": event %" PRIu32 " of %s is out of order",
                         rank, i, t->id);
        before = event->at;
    }
    for (unsigned port = 0; port < t->ports; port++)
        check_port(sim, rank, t, port);
}

void check_traces(struct sim *sim)
{
    for (uint32_t rank = 0; rank < sim_torus(sim)->nodes; rank++) {
        const struct trace *t =
            sim_alive(sim, rank) ? exchanges_last_trace(sim_exchanges(sim, rank)) : NULL;
        if (t != NULL)
            check_trace(sim, rank, t);
    }
}
