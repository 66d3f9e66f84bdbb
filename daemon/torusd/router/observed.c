#include "daemon/torusd/router/observed.h"

#include <string.h>

#include "proto/elapsed.h"

#define SHORTEST                                                                                   \
    200000u /* microseconds: in a shorter time, what a card or queue takes at once counts as a higher rate */
#define LONG 500000u  /* microseconds; in a shorter time, */
#define ENOUGH 4u     /* packets that a link may pass as a whole, */
#define PACKET 65536u /* bytes, if the owner does not say how long they are */
#define CATCH_UP 8u   /* part of the time */
#define BUSY 90u      /* percent of the time */
#define LEAST                                                                                      \
    16384u /* bytes: fewer have perhaps waited for an acknowledgement that the peer delays */

/* Returns the bytes of ENOUGH packets, some of which were made before this measurement began. */
static uint64_t enough_packets(const struct busy_rate *rate)
{
    const uint32_t packet = rate->packet > 0 ? rate->packet : PACKET;

    return ENOUGH * (uint64_t)(packet > rate->passing ? packet : rate->passing);
}

/* Whether the round trip has become so much shorter that acknowledgements of bytes that passed before make the rate too
 * high. */
static bool acks_caught_up(const struct busy_rate *rate, const struct busy_look *look,
                           uint64_t time)
{
    return elapsed(look->rtt, rate->rtt) > time / CATCH_UP;
}

void busy_rate_look(struct busy_rate *rate, uint64_t now, const struct busy_look *look)
{
    const uint64_t time = elapsed(rate->at, now) / 1000;
    const uint64_t waiting = elapsed(rate->waited, look->waited), acked = look->acked - rate->acked;
    const bool busy = rate->queued && waiting >= time / 100 * BUSY;
    const bool enough = acked >= LEAST && (time >= LONG || acked >= enough_packets(rate));

    /* A slow link needs longer for this many bytes; a link that carries nothing has no rate. */
    if (rate->at != 0 && (time < SHORTEST || (busy && look->queued && !enough)))
        return;
    if (busy && enough && !acks_caught_up(rate, look, time)) {
        rate->bps = (uint64_t)((double)acked * 8e6 / (double)waiting);
        rate->measured++;
    }
    rate->at = now;
    rate->acked = look->acked;
    rate->waited = look->waited;
    rate->queued = look->queued;
    rate->rtt = look->rtt;
    rate->passing = rate->packet;
}

/* In eighths. A link becomes slow below SLOW of its nominal rate, and stays so until it carries WELL. Another rate of a
 * slow link counts if it differs by more than CHANGE. */
#define SLOW 6u
#define WELL 7u
#define CHANGE 1u
#define NEAR 6u         /* to the median */
#define WELL_WINDOWS 2u /* the latest ones: a link that is well again is used soon */
#define STEPS 32u       /* slow rates have five significant bits: they differ by 3 to 6 per cent */

static bool is_below(uint64_t rate, uint64_t eighths, uint64_t nominal)
{
    return 8 * rate < eighths * nominal;
}

void observed_note(struct observed *o, uint32_t kbit, uint64_t now)
{
    if (o->count > 0 && elapsed(o->recent[0].at, now) > OBSERVED_FORGET)
        o->count = 0;
    memmove(&o->recent[1], &o->recent[0], (OBSERVED_WINDOWS - 1) * sizeof o->recent[0]);
    o->recent[0] = (struct measured_rate){.kbit = kbit, .at = now};
    o->count += o->count < OBSERVED_WINDOWS;
}

/* Returns how many of the latest measurements decide; 0: there are too few. */
static unsigned deciding(const struct observed *o)
{
    if (o->slow > 0)
        return o->count == OBSERVED_WINDOWS ? OBSERVED_WINDOWS : 0;
    for (unsigned i = OBSERVED_LEAST; i <= o->count; i++)
        if (i == OBSERVED_WINDOWS || elapsed(o->recent[i - 1].at, o->recent[0].at) >= OBSERVED_SPAN)
            return i;
    return 0;
}

/* Returns the measurement of the latest ones that `above` of them exceed. */
static uint32_t ranked(const struct observed *o, unsigned latest, unsigned above)
{
    for (unsigned i = 0; i < latest; i++) {
        unsigned larger = 0;
        for (unsigned j = 0; j < latest; j++)
            larger += o->recent[j].kbit > o->recent[i].kbit ||
                      (o->recent[j].kbit == o->recent[i].kbit && j < i);
        if (larger == above)
            return o->recent[i].kbit;
    }
    return 0;
}

/* Returns the mean of those of the latest measurements that are near their median: a burst makes one too high, a busy
 * processor some too low. */
static uint32_t middle(const struct observed *o, unsigned latest)
{
    const uint64_t median = latest > 0 ? ranked(o, latest, (latest - 1) / 2) : 0;
    uint64_t sum = 0, near = 0;

    for (unsigned i = 0; i < latest; i++)
        if (!is_below(o->recent[i].kbit, NEAR, median) &&
            !is_below(median, NEAR, o->recent[i].kbit)) {
            sum += o->recent[i].kbit;
            near++;
        }
    return near > 0 ? (uint32_t)(sum / near) : 0;
}

uint32_t observed_rate(const struct observed *o)
{
    return middle(o, o->count < OBSERVED_LEAST ? o->count : OBSERVED_LEAST - 1);
}

bool observed_is_well(uint32_t kbit, uint32_t nominal)
{
    return !is_below(kbit, WELL, nominal);
}

/* Whether the latest measurements say that the link is not slow any more. */
static bool is_well(const struct observed *o, uint32_t nominal)
{
    for (unsigned i = 0; i < WELL_WINDOWS; i++)
        if (i >= o->count || !observed_is_well(o->recent[i].kbit, nominal))
            return false;
    return true;
}

static uint32_t quantised(uint32_t kbit)
{
    uint32_t step = 1;

    while (kbit / step >= STEPS)
        step *= 2;
    kbit = (uint32_t)(((uint64_t)kbit + step / 2) / step * step);
    return kbit > 0 ? kbit : 1;
}

/* Whether the latest measurement is new and low. Otherwise what was slow before it may be well now, and a change would
 * count for OBSERVED_HOLD. */
static bool is_slow_now(const struct observed *o, uint32_t nominal, uint64_t now)
{
    return o->recent[0].at == now &&
           is_below(o->recent[0].kbit, o->slow > 0 ? WELL : SLOW, nominal);
}

/* Returns what `slow` should be by what has been measured. */
static uint32_t wanted(const struct observed *o, uint32_t nominal, uint64_t now)
{
    const unsigned decide = deciding(o);
    /* The first of these may have been made before the link was slow. */
    const uint32_t rate = middle(o, decide > 0 ? decide - 1 : 0);

    if (nominal == 0 || (o->slow > 0 && is_well(o, nominal)))
        return 0;
    if (decide == 0 || !is_slow_now(o, nominal, now))
        return o->slow;
    if (o->slow == 0)
        return is_below(ranked(o, decide, 0), SLOW, nominal) ? quantised(rate) : 0;
    if (is_below(rate, 8 - CHANGE, o->slow) || is_below(o->slow, 8 - CHANGE, rate))
        return is_below(rate, WELL, nominal) ? quantised(rate) : 0;
    return o->slow;
}

bool observed_decide(struct observed *o, uint32_t nominal, uint64_t now)
{
    const uint32_t slow = wanted(o, nominal, now);

    if (slow == o->slow || (o->changed_at > 0 && elapsed(o->changed_at, now) < OBSERVED_HOLD))
        return false;
    if (o->slow == 0) /* what was measured before the link was slow does not correct its rate */
        o->count = deciding(o) - 1;
    o->slow = slow;
    o->changed_at = now;
    return true;
}
