#include "daemon/torusd/router/ports/flapping.h"

#include <stdio.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/ports/port.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"
#include "proto/elapsed.h"

/* Returns for how many nanoseconds a link must be quiet after a loss; 0: it does not flap. */
static uint64_t hold_after_loss(struct flapping *f, uint64_t now, uint64_t noticing)
{
    const uint64_t without = elapsed(f->noticed += noticing, now);

    f->lost[f->losses++ % ROUTER_FLAP_LOSSES] = without;
    if (f->held)
        return f->hold;
    if (f->hold > 0 && now < f->released + ROUTER_HOLD_FORGET)
        return 2 * f->hold < ROUTER_HOLD_MOST ? 2 * f->hold : ROUTER_HOLD_MOST;
    if (f->losses >= ROUTER_FLAP_LOSSES &&
        elapsed(f->lost[f->losses % ROUTER_FLAP_LOSSES], without) <= ROUTER_FLAP_TIME)
        return ROUTER_HOLD;
    return 0;
}

void flapping_lost(struct router *r, unsigned i, uint64_t noticing)
{
    struct flapping *f = &r->port[i].flapping;
    const uint64_t now = router_now(r);
    char name[TORUS_PORT_NAME_SIZE];
    const bool held = f->held;

    f->hold = hold_after_loss(f, now, noticing);
    f->held = f->hold > 0;
    f->until = now + f->hold;
    if (!f->held || held)
        return;
    r->port[i].dial_at = ROUTER_NEVER;
    log_warning(
        "port %s: the link to node %u flaps, and is not used until it has been quiet for %d s",
        torus_port_name(r->torus, r->rank, i, name), r->port[i].neighbour,
        (int)(f->hold / SECONDS));
}

uint64_t flapping_deadline(const struct port *port)
{
    return port->flapping.held && !port->no_carrier ? port->flapping.until : ROUTER_NEVER;
}

void flapping_release(struct router *r, unsigned i, uint64_t now)
{
    struct port *port = &r->port[i];

    if (now < flapping_deadline(port))
        return;
    port->flapping.held = false;
    port->flapping.released = now;
    (void)snprintf(port->reason, sizeof port->reason, "quiet for %d s",
                   (int)(port->flapping.hold / SECONDS));
    port->backoff = 0;
    if (port_dials(r, i))
        port_dial(r, i);
}
