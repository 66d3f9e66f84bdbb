#include "daemon/lib/trace/link_load.h"

#include <math.h>
#include <stdlib.h>

#define SPAN_LEAST UINT64_C(900000) /* nanoseconds: samples of traces are a millisecond apart */
#define NO_ROOM_PART                                                                               \
    8u /* a span says nothing if the receiver had no room for more than this part of it */

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

#define KNOWN_SECONDS 0.06 /* of load, for a rate */
#define PART_SECONDS                                                                               \
    0.06 /* parts with less are joined: bytes are acknowledged in lumps of 64 KiB or more */
#define PART_BYTES 262144.0
#define FAST_PART 0.25 /* part of the time for which the rate must be reached */
#define SLOWER 0.7     /* part of the usual rate: a link that is slower than that stands out */

static void add(struct link_use *to, const struct link_use *u)
{
    to->loaded += u->loaded;
    to->drained += u->drained;
    to->carried += u->carried;
}

static double time_of(const struct link_use *u)
{
    return u->loaded + u->drained;
}

static bool tells(const struct link_use *u)
{
    return time_of(u) >= PART_SECONDS && u->carried >= PART_BYTES;
}

/* Joins parts that follow each other until each has a rate. Returns how many are left, at least 1. */
static size_t join(struct link_use *use, size_t count)
{
    size_t joined = 0;

    for (size_t i = 0; i < count; i++)
        if (joined == 0 || tells(&use[joined - 1]))
            use[joined++] = use[i];
        else
            add(&use[joined - 1], &use[i]);
    if (joined > 1 && !tells(&use[joined - 1])) { /* it would be judged by a few lumps */
        add(&use[joined - 2], &use[joined - 1]);
        joined--;
    }
    return joined;
}

/* The most that the link can have carried; infinite if bytes never waited from begin to end. */
static double most_of(const struct link_use *u)
{
    return u->loaded > 0 ? u->carried / u->loaded : HUGE_VAL;
}

/* Fastest first. */
static int by_most(const void *a, const void *b)
{
    const double x = most_of(a), y = most_of(b);

    return (x < y) - (x > y);
}

void link_rate_find(struct link_use *use, size_t count, struct link_rate *rate)
{
    struct link_use all = {0};
    double time = 0;

    *rate = (struct link_rate){.known = false};
    for (size_t i = 0; i < count; i++)
        add(&all, &use[i]);
    if (time_of(&all) < KNOWN_SECONDS)
        return;
    *rate = (struct link_rate){.known = true,
                               .least = all.carried / time_of(&all),
                               .loaded = all.loaded,
                               .carried = all.carried};
    count = join(use, count);
    qsort(use, count, sizeof *use, by_most);
    for (size_t i = 0; i < count && time < FAST_PART * time_of(&all); i++) {
        rate->most = most_of(&use[i]);
        time += time_of(&use[i]);
    }
}

bool link_rate_is_slow(const struct link_rate *rate, double usual)
{
    return rate->known && rate->most < SLOWER * usual;
}
