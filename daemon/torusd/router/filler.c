#include "daemon/torusd/router/filler.h"

#include "daemon/torusd/router/internal.h"
#include "proto/elapsed.h"
#include "proto/frame.h"

/* Probes last PROBE_BEATS: in the first, bytes begin to wait for the link; then two measurements are made. */
#define PROBE_BEATS 3u
#define PROBE_PAUSE (4 * SECONDS)   /* between two probes, and after other measurements */
#define PROBE_AGAIN (1 * SECONDS)   /* after a probe that gave way to other frames */
#define PROBE_OVERDUE (7 * SECONDS) /* without a measurement: then a probe does not give way */
#define FILLER 8192u                /* bytes in a frame */

void filler_check(struct link *link, uint64_t now)
{
    struct router *r = link->router;
    struct port_rate *rate = &r->port[link->port].rate;

    if (rate->observed.slow == 0 || link->minor < RATES_MINOR) {
        rate->probing = false;
    } else if (now >= rate->probe_at && rate->probing) {
        rate->probing = false;
        rate->probe_at = now + PROBE_PAUSE;
    } else if (now >= rate->probe_at && elapsed(rate->observed.at, now) >= PROBE_PAUSE) {
        rate->probing = true;
        rate->insists = elapsed(rate->observed.at, now) >= PROBE_OVERDUE;
        rate->probe_at = now + PROBE_BEATS * r->heartbeat;
        r->io.wake(r->io.context, link->connection);
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
    const struct port_rate *rate = &r->port[link->port].rate;
    const struct peer_message message = {
        .kind = PEER_HEARTBEAT,
        .heartbeat = {.interval_ms = (uint32_t)(r->heartbeat / MILLISECONDS),
                      .filler = {zeros, sizeof zeros}}};

    return rate->probing ? outgoing_make(&r->outgoing, &message) : NULL;
}
