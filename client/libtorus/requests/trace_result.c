#include "client/libtorus/requests/trace_result.h"

#include "client/libtorus/common/fail.h"
#include "client/libtorus/requests/results.h"
#include "proto/text.h"

#define PORTS_MOST 64u
#define INTERVALS_MOST 65536u

/* Whether the node tells the loads of its links completely, or not at all. */
static bool are_loads(const Control__Trace *t, size_t places)
{
    const size_t count = t->n_carried;

    return t->loaded.len == count && t->drained.len == count && t->no_room.len == count &&
           (count == 0 || count == places);
}

int trace_from(Control__Trace *t, struct torus_trace *out, struct torus_error *e)
{
    size_t intervals = t->n_used, places = intervals * t->ports;

    if (t->ports > PORTS_MOST || intervals > INTERVALS_MOST || t->interval_ns == 0 ||
        t->n_sent != places || t->n_received != places || t->n_queue != places ||
        t->n_unacked != places || t->n_resent != places ||
        t->state.len != places * TORUS_TRACE_STATES || t->n_delayed != intervals ||
        t->n_writing != intervals || t->n_event_kind != t->n_event_at ||
        t->n_event_a != t->n_event_at || t->n_event_b != t->n_event_at || !are_loads(t, places) ||
        t->n_neighbour != t->ports || t->n_clock_ahead_ns != t->ports ||
        t->n_clock_error_ns != t->ports)
        return invalid_reply(e, "the parts of its trace do not fit together");
    *out = (struct torus_trace){.id = clean_text(t->id),
                                .began_ns = t->began_ns,
                                .ended_ns = t->ended_ns,
                                .interval_ns = t->interval_ns,
                                .under_way = t->under_way,
                                .ports = t->ports,
                                .intervals = (uint32_t)intervals,
                                .sent = t->sent,
                                .received = t->received,
                                .queue = t->queue,
                                .unacked = t->unacked,
                                .resent = t->resent,
                                .state = t->state.data,
                                .used = t->used,
                                .delayed = t->delayed,
                                .writing = t->writing,
                                .events = t->n_event_at,
                                .event_at = t->event_at,
                                .event_kind = t->event_kind,
                                .event_a = t->event_a,
                                .event_b = t->event_b,
                                .all_events = t->events,
                                .neighbour = t->neighbour,
                                .clock_ahead_ns = t->clock_ahead_ns,
                                .clock_error_ns = t->clock_error_ns,
                                .phase = (const char *const *)t->phase,
                                .phases = t->n_phase,
                                .call = (const char *const *)t->call,
                                .calls = t->n_call};
    if (t->n_carried > 0) {
        out->loaded = t->loaded.data;
        out->drained = t->drained.data;
        out->no_room = t->no_room.data;
        out->carried = t->carried;
    }
    for (size_t i = 0; i < t->n_phase; i++)
        text_clean(t->phase[i]);
    for (size_t i = 0; i < t->n_call; i++)
        text_clean(t->call[i]);
    return 0;
}
