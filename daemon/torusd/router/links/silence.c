#include "daemon/torusd/router/links/silence.h"

#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/links/probe.h"
#include "daemon/torusd/router/ports/flapping.h"
#include "daemon/torusd/router/ports/port_hour.h"
#include "daemon/torusd/router/record/router_record.h"

static uint32_t beats_in(const struct router *r, uint64_t time)
{
    return (uint32_t)((time + r->heartbeat - 1) / r->heartbeat);
}

static double to_seconds(uint64_t time)
{
    return (double)time / (double)SECONDS;
}

int silence_beat(struct link *link, struct error *why)
{
    struct router *r = link->router;
    struct connection_stat stat = {0};
    bool heard = link->heard || link->held_by != 0; /* held: this node itself has stopped reading */
    uint64_t stall = r->silence > ROUTER_STALL ? r->silence : ROUTER_STALL;
    uint64_t unacked = r->silence > ROUTER_UNACKED ? r->silence : ROUTER_UNACKED;

    if (stall < ROUTER_STALL_BEATS * link->interval)
        stall = ROUTER_STALL_BEATS * link->interval;
    r->io.stat(r->io.context, link->connection, &stat);
    bool taken = !stat.in_flight || stat.acked != link->acked;
    bool answered = heard || taken;
    link->acked = stat.acked;
    link->retransmits = stat.retransmits;
    port_hour_note(r, link->port);
    link->blocked = taken ? 0 : link->blocked + 1;
    link->heard = false;
    link->unheard = heard ? 0 : link->unheard + 1;
    link->unanswered = answered ? 0 : link->unanswered + 1;
    if (link->unanswered >= beats_in(r, r->silence)) {
        flapping_lost(r, link->port, r->silence);
        return error_set(why, ERROR_LINK, "silent for %.3g s", to_seconds(r->silence));
    }
    if (link->blocked >= beats_in(r, unacked)) {
        flapping_lost(r, link->port, unacked);
        faults_of_mtu(r, link->port, &stat);
        probe_ask_mtu(stat.unacked, stat.mtu, why);
        return -1;
    }
    if (link->unheard >= beats_in(r, stall))
        return error_set(why, ERROR_LINK,
                         "silent for %.3g s: torusd there is stopped or overloaded",
                         to_seconds(stall));
    return 0;
}
