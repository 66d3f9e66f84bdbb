#include "daemon/torusd/router/filler.h"

#include "daemon/torusd/router/internal.h"
#include "proto/elapsed.h"
#include "proto/frame.h"

/* Probes last PROBE_BEATS: in the first, bytes begin to wait for the link; then two measurements are made. If the link
 * carries more than it did, they last until the filler has become as much as it carries. */
#define PROBE_BEATS 3u
#define PROBE_MOST 12u
#define PROBE_PAUSE (4 * SECONDS)   /* between two probes, and after other measurements */
#define PROBE_AGAIN (1 * SECONDS)   /* after a probe that has given way */
#define PROBE_OVERDUE (7 * SECONDS) /* without a measurement: then a probe does not give way */
#define FILLER 8192u                /* bytes in a frame */

/* Returns the bytes that the link carries from one beat to the next, as far as is known. */
static uint64_t bytes_of_beat(const struct router *r, const struct port_rate *rate)
{
    return (uint64_t)rate->observed.slow * 125 * (r->heartbeat / MILLISECONDS) / 1000;
}

static void send_filler(struct link *link, const struct connection_stat *stat, uint64_t carried)
{
    struct router *r = link->router;
    struct port_rate *rate = &r->port[link->port].rate;
    const uint64_t known = bytes_of_beat(r, rate);
    uint64_t most = 2 * (carried > known ? carried : known);

    if (most < FILLER)
        most = FILLER;
    rate->filler_left = most > stat->unacked ? most - stat->unacked : 0;
    r->io.wake(r->io.context, link->connection);
}

void filler_check(struct link *link, const struct connection_stat *stat, uint64_t now)
{
    struct router *r = link->router;
    struct port_rate *rate = &r->port[link->port].rate;
    const uint64_t carried = stat->acked - rate->acked;
    const bool faster = 2 * carried > 3 * bytes_of_beat(r, rate);

    rate->acked = stat->acked;
    if (rate->observed.slow == 0 || link->minor < RATES_MINOR) {
        rate->probing = false;
    } else if (rate->probing) {
        rate->probe_beats++;
        rate->probing = rate->probe_beats < (faster ? PROBE_MOST : PROBE_BEATS);
        rate->insists = rate->insists || faster; /* frames wait there for a short time only */
        rate->probe_at = now + PROBE_PAUSE;
        if (rate->probing)
            send_filler(link, stat, carried);
    } else if (now >= rate->probe_at && elapsed(rate->observed.recent[0].at, now) >= PROBE_PAUSE) {
        rate->probing = true;
        rate->insists = elapsed(rate->observed.recent[0].at, now) >= PROBE_OVERDUE;
        rate->probe_beats = 0;
        send_filler(link, stat, 0);
    }
}

void filler_give_way(struct router *r, unsigned i)
{
    struct port_rate *rate = &r->port[i].rate;

    if (!rate->probing || rate->insists)
        return;
    rate->probing = false;
    rate->probe_at = r->now + PROBE_AGAIN;
}

struct outgoing *filler_next(struct link *link)
{
    static const uint8_t zeros[FILLER];
    struct router *r = link->router;
    struct port_rate *rate = &r->port[link->port].rate;
    const struct peer_message message = {
        .kind = PEER_HEARTBEAT,
        .heartbeat = {.interval_ms = (uint32_t)(r->heartbeat / MILLISECONDS),
                      .filler = {zeros, sizeof zeros}}};

    if (!rate->probing || rate->filler_left == 0)
        return NULL;
    rate->filler_left -= rate->filler_left < FILLER ? rate->filler_left : FILLER;
    return outgoing_make(&r->outgoing, &message);
}
