#include "daemon/torusd/router/link_clock.h"

#include "daemon/lib/base/limits.h"
#include "proto/elapsed.h"
#include "proto/peer/peer_message.h"

#define KEPT (60 * SECONDS)
#define DRIFT 20000u /* clocks go apart by at most 50 us in a second: one part in 20000 */
#define WAY_MOST (10 * SECONDS)
#define CLEARLY 2u /* times as long */
#define WAIT_LEAST (1 * MILLISECONDS)

void link_clock_fill(const struct link_clock *c, struct peer_heartbeat *beat, uint64_t now)
{
    beat->at = now;
    if (c->heard_at > 0) {
        beat->echo = c->peer_at;
        beat->held = elapsed(c->heard_at, now);
    }
}

static uint64_t error_now(const struct link_clock *c, uint64_t now)
{
    return c->error + elapsed(c->found_at, now) / DRIFT;
}

/* Returns the time from one clock to the other, of which the difference is known but for an error. */
static uint64_t way_of(uint64_t sent, uint64_t arrived)
{
    const int64_t way = (int64_t)(arrived - sent);

    return way > 0 ? (uint64_t)way : 0;
}

static void measure_ways(struct link_clock *c, const struct peer_heartbeat *beat, uint64_t now)
{
    if (!c->known)
        return;
    c->in = way_of(beat->at, now + (uint64_t)c->ahead);
    c->out = way_of(beat->echo + (uint64_t)c->ahead, beat->at - beat->held);
}

static void find_ahead(struct link_clock *c, const struct peer_heartbeat *beat, uint64_t now)
{
    uint64_t away = now - beat->echo, drift = away / DRIFT + 1;
    uint64_t way = beat->held < away ? away - beat->held : 0; /* there and back */
    uint64_t error = way / 2 + drift + 1;

    if (way > WAY_MOST ||
        (c->known && elapsed(c->found_at, now) < KEPT && error >= error_now(c, now)))
        return;
    /* Both clocks are known at the middle between the two times. */
    uint64_t theirs = beat->at - beat->held / 2, ours = beat->echo + away / 2;
    c->known = true;
    c->ahead = (int64_t)(theirs - ours);
    c->error = error;
    c->found_at = now;
}

void link_clock_take(struct link_clock *c, const struct peer_heartbeat *beat, uint64_t now)
{
    if (beat->at == 0)
        return;
    c->peer_at = beat->at;
    c->heard_at = now;
    if (beat->echo == 0 || beat->echo > now || beat->held > beat->at)
        return;
    /* The neighbour's clock may be faster, so the neighbour may say that it held the heartbeat for longer than the
     * heartbeat was away. */
    uint64_t away = now - beat->echo, drift = away / DRIFT + 1;
    if (beat->held > away + drift)
        return;
    find_ahead(c, beat, now);
    measure_ways(c, beat, now);
}

bool link_clock_acks_wait(const struct link_clock *c, uint64_t interval, uint64_t now)
{
    const uint64_t late = elapsed(c->heard_at, now);
    const uint64_t overdue = late > interval ? late - interval : 0;
    const uint64_t in = c->in > overdue ? c->in : overdue;

    return c->known && in > CLEARLY * c->out && in > WAIT_LEAST;
}

bool link_clock_ahead(const struct link_clock *c, uint64_t now, int64_t *ahead, uint64_t *error)
{
    *ahead = c->ahead;
    *error = error_now(c, now);
    return c->known;
}
