#include "daemon/lib/trace/link_load.h"

#define SPAN_LEAST UINT64_C(900000) /* nanoseconds: samples of traces are a millisecond apart */
#define NO_ROOM_PART                                                                               \
    8u /* a span in which there was no room for longer than this part says nothing */

/* A byte that has just been sent when the span begins is acknowledged before it ends, unless others are before it. */
static uint64_t least_length(const struct link_load_sample *s)
{
    const uint64_t trips = 2 * s->min_trip;

    return trips > SPAN_LEAST ? trips : SPAN_LEAST;
}

static void begin(struct link_load *l, const struct link_load_sample *sample, uint64_t now)
{
    *l = (struct link_load){.begun = sample->known, .at = now, .sample = *sample};
}

bool link_load_take(struct link_load *l, const struct link_load_sample *sample, uint64_t now,
                    struct link_load_span *span)
{
    const struct link_load_sample *first = &l->sample;

    *span = (struct link_load_span){0};
    if (!l->begun || !sample->known || now < l->at || sample->acked < first->acked ||
        sample->no_room < first->no_room) {
        begin(l, sample, now);
        return false;
    }
    const uint64_t length = now - l->at, no_room = sample->no_room - first->no_room;
    const uint64_t acked = sample->acked - first->acked;
    if (length < least_length(sample))
        return false;
    span->began = l->at;
    span->no_room = no_room < length ? no_room : length;
    if (first->backlog >= LINK_LOAD_LEAST && span->no_room * NO_ROOM_PART <= length) {
        if (first->backlog >= acked + LINK_LOAD_LEAST)
            span->loaded = length;
        else
            span->drained = length;
        span->carried = acked;
    }
    begin(l, sample, now);
    return true;
}
