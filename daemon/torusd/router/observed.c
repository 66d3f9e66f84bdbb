#include "daemon/torusd/router/observed.h"

#include <string.h>

#include "proto/elapsed.h"

#define SHORTEST                                                                                   \
    200000u /* microseconds: in a shorter time, what a card or queue takes at once counts as a higher rate */
#define LONG 500000u /* microseconds; in a shorter time, */
#define ENOUGH                                                                                     \
    262144u      /* bytes: a queue may pass up to 64 KiB as a whole, and several of them count */
#define BUSY 90u /* percent of the time */
#define LEAST                                                                                      \
    16384u /* bytes: fewer have perhaps waited for an acknowledgement that the peer delays */

void busy_rate_look(struct busy_rate *rate, uint64_t now, const struct busy_look *look)
{
    const uint64_t time = elapsed(rate->at, now) / 1000;
    const uint64_t waiting = elapsed(rate->waited, look->waited), acked = look->acked - rate->acked;
    const bool busy = rate->queued && waiting >= time / 100 * BUSY;
    const bool enough = acked >= (time < LONG ? ENOUGH : LEAST);

    /* A slow link needs longer for this many bytes; a link that carries nothing has no rate. */
    if (rate->at != 0 && (time < SHORTEST || (busy && look->queued && !enough)))
        return;
    if (busy && enough) {
        rate->bps = (uint64_t)((double)acked * 8e6 / (double)waiting);
        rate->measured++;
    }
    rate->at = now;
    rate->acked = look->acked;
    rate->waited = look->waited;
    rate->queued = look->queued;
}

/* In eighths. A link becomes slow below SLOW of its nominal rate, and stays so until it carries WELL. Another rate of a
 * slow link counts if it differs by more than CHANGE. */
#define SLOW 6u
#define WELL 7u
#define CHANGE 1u
#define WELL_WINDOWS 2u /* the latest ones: a link that is well again is used soon */
#define STEPS 32u       /* slow rates have five significant bits: they differ by 3 to 6 per cent */

void observed_note(struct observed *o, uint32_t kbit, uint64_t now)
{
    if (o->count > 0 && elapsed(o->at, now) > OBSERVED_FORGET)
        o->count = 0;
    memmove(&o->recent[1], &o->recent[0], (OBSERVED_WINDOWS - 1) * sizeof o->recent[0]);
    o->recent[0] = kbit;
    o->count += o->count < OBSERVED_WINDOWS;
    o->at = now;
}

/* Returns the second largest of the latest measurements: a burst makes one too high, a busy processor some too low. */
static uint32_t second_largest(const struct observed *o, unsigned latest)
{
    uint32_t first = 0, second = 0;

    for (unsigned i = 0; i < o->count && i < latest; i++) {
        if (o->recent[i] >= first) {
            second = first;
            first = o->recent[i];
        } else if (o->recent[i] > second) {
            second = o->recent[i];
        }
    }
    return o->count > 1 ? second : first;
}

/* Fewer measurements than those that decide whether a link is slow, because the first of these may have been made
 * before the link was slow. */
uint32_t observed_rate(const struct observed *o)
{
    return second_largest(o, OBSERVED_WINDOWS - 1);
}

static bool is_below(uint64_t rate, uint64_t eighths, uint64_t nominal)
{
    return 8 * rate < eighths * nominal;
}

bool observed_is_well(uint32_t kbit, uint32_t nominal)
{
    return !is_below(kbit, WELL, nominal);
}

/* Whether the latest measurements say that the link is not slow any more. */
static bool is_well(const struct observed *o, uint32_t nominal)
{
    for (unsigned i = 0; i < WELL_WINDOWS; i++)
        if (i >= o->count || !observed_is_well(o->recent[i], nominal))
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
    return o->at == now && is_below(o->recent[0], o->slow > 0 ? WELL : SLOW, nominal);
}

/* Returns what `slow` should be by what has been measured. */
static uint32_t wanted(const struct observed *o, uint32_t nominal, uint64_t now)
{
    const uint32_t rate = observed_rate(o);

    if (nominal == 0 || (o->slow > 0 && is_well(o, nominal)))
        return 0;
    if (o->count < OBSERVED_WINDOWS || !is_slow_now(o, nominal, now))
        return o->slow;
    if (o->slow == 0)
        return is_below(second_largest(o, OBSERVED_WINDOWS), SLOW, nominal) ? quantised(rate) : 0;
    if (is_below(rate, 8 - CHANGE, o->slow) || is_below(o->slow, 8 - CHANGE, rate))
        return is_below(rate, WELL, nominal) ? quantised(rate) : 0;
    return o->slow;
}

bool observed_decide(struct observed *o, uint32_t nominal, uint64_t now)
{
    const uint32_t slow = wanted(o, nominal, now);

    if (slow == o->slow || (o->changed_at > 0 && elapsed(o->changed_at, now) < OBSERVED_HOLD))
        return false;
    o->slow = slow;
    o->changed_at = now;
    return true;
}
