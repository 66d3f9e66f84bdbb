/* Link states: tells all neighbours about changes of the topology, those of a moment together, so that a torus that
 * comes up does not cause one frame per change. Without that moment, nodes that have lost a link would hear old claims
 * of each other before new ones from elsewhere, and take other nodes for cut off.
 * When a link comes up, the neighbour is sent all link states, and again every RESTATE, which replaces claims that
 * were damaged on their way. */
#include "daemon/torusd/router/flood.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/internal.h"
#include "proto/frame.h"
#include "proto/text.h"

#define GATHER (1 * MILLISECONDS) /* from a change to the flood that tells it, with others */
#define RESTATE (30 * SECONDS)
#define ENTRIES_A_FRAME 256u
/* If many changes arrive together, the handler hears of this many one by one, and of the rest together: all exchanges
 * look at each change, and a neighbour may send as many changes as its link carries. */
#define TOLD_MOST 16u
/* Claims about this node that come from another boot number are overruled at most once in this time: if another machine
 * has the same rank, the two overrule each other for ever, and all nodes hear of it each time. */
#define OVERRULE_PAUSE (1 * SECONDS)

static void mark_at(struct router *r, struct port *port, uint32_t rank)
{
    if (port->link == NULL)
        return;
    port->dirty[rank / 8] |= (uint8_t)(1u << rank % 8);
    port->any_dirty = true;
    if (r->flood_at == ROUTER_NEVER)
        r->flood_at = router_now(r) + GATHER;
}

static void mark_unsent(struct router *r, uint32_t rank)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        mark_at(r, &r->port[i], rank);
}

/* Does so even without a link, because clients of this node hear of it. */
static void mark_routes_unsent(struct router *r)
{
    mark_unsent(r, r->rank);
    if (r->flood_at == ROUTER_NEVER)
        r->flood_at = router_now(r) + GATHER;
}

void flood_self_changed(struct router *r)
{
    mark_unsent(r, r->rank);
    r->handler.topology(r->handler.context);
}

void router_confirm(struct router *r, uint64_t confirmed)
{
    if (r->confirmed == confirmed)
        return;
    r->confirmed = confirmed;
    mark_unsent(r, r->rank);
}

void router_forward(struct router *r, bool forwards)
{
    const uint32_t before = r->forwards;

    r->forwards = forwards ? TOPOLOGY_FORWARDS : TOPOLOGY_FORWARDS_NOT;
    r->forwards_until = forwards ? router_now(r) + FORWARD_LEASE : ROUTER_NEVER;
    if (r->forwards == before)
        return;
    mark_routes_unsent(r);
    if (forwards)
        r->quick_at = router_now(r);
}

void router_forward_lost(struct router *r)
{
    const uint64_t until = router_now(r) + FORWARD_GRACE;

    if (until < r->forwards_until && r->forwards == TOPOLOGY_FORWARDS)
        r->forwards_until = until;
}

bool router_knows_forwarding(const struct router *r)
{
    return router_least_minor(r) >= FORWARD_MINOR;
}

void flood_set_quiet(struct router *r, uint32_t quiet)
{
    if (r->quiet == quiet)
        return;
    r->quiet = quiet;
    mark_routes_unsent(r);
}

void flood_set_rates(struct router *r, const uint32_t *rates)
{
    static const uint32_t nothing[2 * TORUS_MAX_PORTS];
    const uint32_t *now = rates != NULL ? rates : nothing;
    const size_t size = topology_rates_count(&r->topology) * sizeof *now;

    if (memcmp(r->rates, now, size) == 0)
        return;
    memcpy(r->rates, now, size);
    r->knows_rates = rates != NULL;
    mark_routes_unsent(r);
}

void flood_mark_all_unsent(struct router *r, unsigned port)
{
    for (uint32_t rank = 0; rank < r->torus->nodes; rank++)
        mark_at(r, &r->port[port], rank);
    r->port[port].restate_at = router_now(r) + RESTATE;
}

void flood_check_lease(struct router *r, uint64_t now)
{
    if (now < r->forwards_until)
        return;
    log_warning(
        "torus-routed does not say any more that this node forwards IP packets: others avoid it");
    router_forward(r, false);
}

void flood_tick(struct router *r, unsigned port, uint64_t now)
{
    if (r->port[port].link != NULL && now >= r->port[port].restate_at)
        flood_mark_all_unsent(r, port);
}

void flood_lost(struct router *r, unsigned port)
{
    memset(r->port[port].dirty, 0, (r->torus->nodes + 7) / 8);
    r->port[port].any_dirty = false;
    for (uint32_t rank = 0; rank < r->torus->nodes; rank++)
        if (topology_drop_claim(&r->topology, port, rank) != TOPOLOGY_SAME)
            mark_unsent(r, rank);
}

/* The handler need not know before the bytes that arrived together have been decoded. */
static void tell_routes(struct router *r)
{
    if (r->reading != NULL)
        r->must_tell_confirmed = true;
    else if (r->handler.confirmed != NULL)
        r->handler.confirmed(r->handler.context);
}

/* When the last node of an older minor version is gone, everybody says what that node did not know. */
static void mark_kept_back_unsent(struct router *r, uint32_t minor)
{
    if (r->told_minor != minor)
        for (uint32_t rank = 0; rank < r->torus->nodes; rank++)
            mark_unsent(r, rank);
    r->told_minor = minor;
}

static void send_entries(struct router *r, unsigned port, const struct peer_link_state_entry *entry,
                         size_t n)
{
    const struct peer_message message = {.kind = PEER_LINK_STATE, .link_state = {n, entry}};

    if (n > 0)
        router_send(r, port, &message);
}

void flood_flush(struct router *r)
{
    struct peer_link_state_entry entry[ENTRIES_A_FRAME];
    const uint32_t minor = router_least_minor(r);
    const bool confirms = minor >= CONFIRM_MINOR, forwards = minor >= FORWARD_MINOR;
    const size_t rates = minor >= RATES_MINOR ? topology_rates_count(&r->topology) : 0;
    /* The version rises here, so that each flood uses one version, and not each call of router_confirm(). */
    bool changed = topology_set_routes(&r->topology, r->confirmed, r->forwards, r->quiet);

    changed |= topology_set_rates(&r->topology, r->knows_rates ? r->rates : NULL);
    mark_kept_back_unsent(r, minor);
    r->flood_at = ROUTER_NEVER;
    for (unsigned i = 0; i < torus_ports(r->torus); i++) {
        struct port *port = &r->port[i];
        size_t n = 0;
        if (!port->any_dirty)
            continue;
        for (uint32_t rank = 0; rank < r->torus->nodes; rank++) {
            const struct topology_entry *known = &r->topology.entry[rank];
            if ((port->dirty[rank / 8] & 1u << rank % 8) == 0)
                continue;
            entry[n] = (struct peer_link_state_entry){.rank = rank,
                                                      .hops = known->hops,
                                                      .up = known->up,
                                                      .boot = known->boot,
                                                      .version = known->version,
                                                      .minor = known->minor,
                                                      .confirmed = confirms ? known->confirmed : 0,
                                                      .forwards = forwards ? known->forwards : 0,
                                                      .quiet = forwards ? known->quiet : 0,
                                                      .n_rates = known->rates != NULL ? rates : 0,
                                                      .rates = known->rates};
            if (++n == ENTRIES_A_FRAME) {
                send_entries(r, i, entry, n);
                n = 0;
            }
        }
        send_entries(r, i, entry, n);
        memset(port->dirty, 0, (r->torus->nodes + 7) / 8);
        port->any_dirty = false;
    }
    if (changed)
        tell_routes(r);
}

static int check_link_state(const struct router *r, unsigned port,
                            const struct peer_link_state_entry *entry, struct error *e)
{
    uint32_t neighbour = r->port[port].neighbour, least;

    if (entry->rank >= r->torus->nodes)
        return error_set(e, ERROR_PROTOCOL, "link state of node %u, which is not in the torus",
                         entry->rank);
    least = torus_distance(r->torus, neighbour, entry->rank);
    if (entry->hops < least || (entry->rank == neighbour && entry->hops != 0))
        return error_set(e, ERROR_PROTOCOL,
                         "link state of node %u over %u %s, but node %u is %u %s away from it",
                         entry->rank, entry->hops, text_plural(entry->hops, "hop", "hops"),
                         neighbour, least, text_plural(least, "hop", "hops"));
    if (entry->n_rates != 0 && entry->n_rates != topology_rates_count(&r->topology))
        return error_set(e, ERROR_PROTOCOL, "link state of node %u with %zu rates, not %zu",
                         entry->rank, entry->n_rates, topology_rates_count(&r->topology));
    return 0;
}

/* A claim about this node, not older than its own statement, has another boot number. An earlier start of this node made
 * it, or another machine that has the same rank. Claims of an earlier start disappear when the links of that start are
 * lost; so a claim that arrives later, although this node has overruled others before, is of another machine. */
static void contested(struct router *r, unsigned port)
{
    struct contest *c = &r->contest;
    const uint64_t now = router_now(r);

    if (c->certain_at == 0)
        c->certain_at = now + r->silence + ROUTER_STALL;
    else if (now >= c->certain_at)
        faults_of_rank(r, port);
    if (c->overrule_at == ROUTER_NEVER)
        c->overrule_at = now > c->pause_until ? now : c->pause_until;
}

void flood_overrule(struct router *r, uint64_t now)
{
    if (now < r->contest.overrule_at)
        return;
    r->contest.overrule_at = ROUTER_NEVER;
    r->contest.pause_until = now + OVERRULE_PAUSE;
    mark_unsent(r, r->rank);
}

static void tell_topology(struct router *r)
{
    if (r->reading != NULL && r->told++ >= TOLD_MOST)
        r->must_tell_again = true;
    else
        r->handler.topology(r->handler.context);
}

void flood_tell_handler(struct router *r)
{
    const bool late = r->must_tell_again, confirmed = r->must_tell_confirmed;

    r->told = 0;
    r->must_tell_again = false;
    r->must_tell_confirmed = false;
    if (late)
        r->handler.topology(r->handler.context);
    if (confirmed && r->handler.confirmed != NULL)
        r->handler.confirmed(r->handler.context);
}

/* Whether what concerns IP routes has changed. */
static bool says_more(const struct topology_entry *before, const struct topology_entry *now)
{
    return now->confirmed != before->confirmed || now->forwards != before->forwards ||
           now->quiet != before->quiet;
}

/* Whether what links carry may have changed; `changes`: topology.rate_changes before. */
static bool says_other_rates(const struct router *r, uint64_t changes)
{
    return r->topology.rate_changes != changes;
}

int flood_heard(struct router *r, unsigned port, const struct peer_link_state *state,
                struct error *e)
{
    bool changed = false;
    int result = 0;

    for (size_t i = 0; i < state->n_entry && result == 0; i++) {
        const struct peer_link_state_entry *in = &state->entry[i];
        const struct topology_entry claim = {
            in->hops,     in->version, in->up,
            in->boot,     in->minor,   in->confirmed,
            in->forwards, in->quiet,   in->n_rates > 0 ? in->rates : NULL};
        result = check_link_state(r, port, in, e);
        if (result != 0)
            break;
        const struct topology_entry before = r->topology.entry[in->rank];
        const uint64_t changes = r->topology.rate_changes;
        enum topology_news news = topology_take_claim(&r->topology, port, in->rank, &claim);
        r->must_tell_confirmed |=
            says_more(&before, &r->topology.entry[in->rank]) || says_other_rates(r, changes);
        if (news != TOPOLOGY_SAME && in->rank == r->rank && in->boot != r->boot)
            contested(r, port);
        else if (news != TOPOLOGY_SAME)
            mark_unsent(r, in->rank);
        changed = changed || news == TOPOLOGY_NEW;
    }
    if (changed)
        tell_topology(r);
    return result;
}
