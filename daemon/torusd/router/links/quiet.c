#include "daemon/torusd/router/links/quiet.h"

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/flooding/flood.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"

static bool looks(const struct router *r)
{
    return r->forwards == TOPOLOGY_FORWARDS && router_beats(r);
}

bool quiet_is_due(struct router *r, uint64_t now)
{
    if (now < r->quick_at || !looks(r))
        return false;
    r->quick_at += QUIET_BEAT;
    if (r->quick_at <= now)
        r->quick_at = now + QUIET_BEAT;
    return true;
}

uint64_t quiet_deadline(const struct router *r)
{
    return looks(r) ? r->quick_at : ROUTER_NEVER;
}

/* The acknowledgements are only asked for if nothing else has arrived, because that takes three calls to the kernel. They are
 * asked for now: if this node was not running, they have arrived meanwhile. In the first such interval it is not known how
 * much was acknowledged before; then everything has to be. */
static bool is_answered(struct link *link, uint64_t *round_trip)
{
    struct quiet *q = &link->quiet;
    struct connection_stat stat = {0};
    bool answered = q->heard || link->held_by != 0;

    *round_trip = 0;
    if (!answered) {
        link->router->io.stat(link->router->io.context, link->connection, &stat);
        *round_trip = stat.rtt_us * (MILLISECONDS / 1000);
        answered = !stat.in_flight || (q->counted && stat.acked != q->acked);
        q->acked = stat.acked;
    }
    q->counted = !q->heard && link->held_by == 0;
    q->heard = false;
    return answered;
}

void quiet_beat(struct link *link)
{
    const struct router *r = link->router;
    struct quiet *q = &link->quiet;
    char name[TORUS_PORT_NAME_SIZE];
    uint64_t round_trip;
    const bool answered = is_answered(link, &round_trip);

    q->missing = answered ? 0 : q->missing + 1;
    q->answered = answered ? q->answered + 1 : 0;
    if (!q->is_quiet && q->missing >= QUIET_BEATS + 2 * round_trip / QUIET_BEAT) {
        q->is_quiet = true;
        log_info("port %s: nothing comes from node %u: IP routes avoid the link",
                 torus_port_name(r->torus, r->rank, link->port, name),
                 r->port[link->port].neighbour);
    } else if (q->is_quiet && q->answered >= QUIET_CALM) {
        q->is_quiet = false;
        log_info("port %s: node %u is heard again: IP routes use the link",
                 torus_port_name(r->torus, r->rank, link->port, name),
                 r->port[link->port].neighbour);
    }
}

void quiet_state(struct router *r)
{
    uint32_t quiet = 0;

    for (unsigned i = 0; i < torus_ports(r->torus) && looks(r); i++)
        if (r->port[i].link != NULL && r->port[i].link->quiet.is_quiet)
            quiet |= 1u << i;
    flood_set_quiet(r, quiet);
}
