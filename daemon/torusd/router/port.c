#include "daemon/torusd/router/port.h"

#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/internal.h"
#include "proto/elapsed.h"
#include "proto/text.h"

/* --- the last hour --- */

/* Counters of all links of the port; `link` may be NULL. */
static void count_port(const struct port *port, uint64_t value[LAST_HOUR_VALUES])
{
    const struct link *link = port->link;

    memset(value, 0, LAST_HOUR_VALUES * sizeof *value);
    value[PORT_HOUR_SENT] = port->before.tx_bytes + (link != NULL ? link->tx_bytes : 0);
    value[PORT_HOUR_RETRANSMITS] =
        port->before.retransmits + (link != NULL ? link->retransmits : 0);
    value[PORT_HOUR_CONNECTS] = port->connects;
}

void port_hour_note(struct router *r, unsigned i)
{
    uint64_t value[LAST_HOUR_VALUES];

    count_port(&r->port[i], value);
    last_hour_note(&r->port[i].hour, router_now(r), value);
}

/* Fills hour_ns and what follows it. */
static void port_hour_fill(struct router *r, unsigned i, struct port_info *info)
{
    const struct port *port = &r->port[i];
    uint64_t value[LAST_HOUR_VALUES], risen[LAST_HOUR_VALUES];

    count_port(port, value);
    info->hour_ns = last_hour_risen(&port->hour, router_now(r), value, risen);
    info->hour_tx_bytes = risen[PORT_HOUR_SENT];
    info->hour_retransmits = risen[PORT_HOUR_RETRANSMITS];
    info->hour_connects = (uint32_t)risen[PORT_HOUR_CONNECTS];
}

/* --- refused connections --- */

#define TURNED_AWAY_TIME (10 * SECONDS)
#define TURNED_AWAY_LOGGED 16u /* connections that are logged one by one in TURNED_AWAY_TIME */

/* Logs a refused connection that this node has not dialled. Strangers may make any number of connections, so a reason
 * is logged when it is new, and only a few connections are logged in TURNED_AWAY_TIME. */
static void turned_away_note(struct router *r, unsigned i, const char *address, const char *reason)
{
    struct port *port = &r->port[i];
    struct turned_away *t = &port->turned_away;

    if (port->link == NULL)
        (void)snprintf(port->reason, sizeof port->reason, "%s", reason);
    if (r->stopping)
        return;
    if (t->since == ROUTER_NEVER) {
        t->since = router_now(r);
        t->logged = t->others = 0;
    }
    if (t->logged < TURNED_AWAY_LOGGED && strcmp(t->last, reason) != 0) {
        char name[TORUS_PORT_NAME_SIZE];
        t->logged++;
        log_warning("port %s: a connection that is not from the neighbour was rejected: %s: %s",
                    torus_port_name(r->torus, r->rank, i, name), address, reason);
    } else {
        t->others++;
    }
    (void)snprintf(t->last, sizeof t->last, "%s", reason);
}

uint64_t turned_away_deadline(const struct port *port)
{
    const struct turned_away *t = &port->turned_away;

    return t->since == ROUTER_NEVER ? ROUTER_NEVER : t->since + TURNED_AWAY_TIME;
}

void turned_away_tell(struct router *r, unsigned i, uint64_t now)
{
    struct turned_away *t = &r->port[i].turned_away;
    char name[TORUS_PORT_NAME_SIZE];

    if (now < turned_away_deadline(&r->port[i]))
        return;
    /* A misconfigured neighbour tries again every two seconds, which is not worth a line each time. */
    if (t->others < TURNED_AWAY_LOGGED) {
        t->since = ROUTER_NEVER;
        return;
    }
    log_warning("port %s: %u more %s rejected in %d s, the last one: %s",
                torus_port_name(r->torus, r->rank, i, name), t->others,
                text_plural(t->others, "connection that is not from the neighbour was",
                            "connections that are not from the neighbour were"),
                (int)(TURNED_AWAY_TIME / SECONDS), t->last);
    /* From now on connections are only counted, until few arrive for a while. */
    t->since = now;
    t->logged = TURNED_AWAY_LOGGED;
    t->others = 0;
}

/* --- dialling, and the link that is up --- */

#define BACKOFF_FIRST (50 * MILLISECONDS)
#define BACKOFF_MOST (2 * SECONDS)
#define HEARTBEAT_OLD (1 * SECONDS) /* heartbeat interval of neighbours that do not tell theirs */

bool port_dials(const struct router *r, unsigned port)
{
    return torus_port_dials(r->torus, r->rank, port);
}

void port_dial(struct router *r, unsigned i)
{
    r->port[i].dial_at = ROUTER_NEVER;
    r->port[i].dialling = true;
    r->io.dial(r->io.context, i);
}

void port_note(struct router *r, unsigned i, const char *reason)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    if (port->no_carrier || strcmp(port->reason, reason) == 0)
        return;
    (void)snprintf(port->reason, sizeof port->reason, "%s", reason);
    if (!r->stopping)
        log_warning("port %s to node %u: %s", torus_port_name(r->torus, r->rank, i, name),
                    port->neighbour, reason);
}

/* Whether this node has dialled a connection that is up, or may be soon. */
static bool has_dialled(const struct port *port)
{
    const struct link *link = port->candidates;

    while (link != NULL && !link->dialled)
        link = link->next;
    return port->link != NULL || link != NULL;
}

/* Dials again later, unless this node has dialled another connection: when that one ends, this function is
 * called again. If every replaced connection were dialled again, new connections would replace each other
 * forever. */
static void redial_later(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];
    uint64_t jitter;

    if (!port_dials(r, i) || r->stopping || port->dialling || port->dial_at != ROUTER_NEVER ||
        port->flapping.held || has_dialled(port))
        return;
    port->backoff = port->backoff == 0 ? BACKOFF_FIRST : port->backoff * 2;
    if (port->backoff > BACKOFF_MOST)
        port->backoff = BACKOFF_MOST;
    r->io.random(r->io.context, &jitter, sizeof jitter);
    port->dial_at = router_now(r) + port->backoff / 2 + jitter % (port->backoff / 2 + 1);
}

void router_dial_failed(struct router *r, unsigned port, const char *reason)
{
    r->port[port].dialling = false;
    port_note(r, port, reason);
    redial_later(r, port);
}

void router_dial_again(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];

    if (!port_dials(r, i) || r->stopping || port->flapping.held || has_dialled(port))
        return;
    port->backoff = 0;
    port_dial(r, i);
}

void router_listening(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    if (fault != NULL) {
        port_note(r, i, fault);
    } else if (port->reason[0] != '\0' && port->link == NULL && !port->no_carrier) {
        port->reason[0] = '\0';
        log_info("port %s to node %u: listening", torus_port_name(r->torus, r->rank, i, name),
                 port->neighbour);
    }
}

void port_link_up(struct link *link)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    char name[TORUS_PORT_NAME_SIZE];

    LL_DELETE(port->candidates, link);
    link->up = link->heard = true;
    link->last_frame = link->taken_at = r->now;
    link->interval = HEARTBEAT_OLD; /* until the neighbour has told its own */
    if (!router_beats(r)) {
        r->beat_at = router_now(r) + r->heartbeat;
        r->quick_at = router_now(r);
    }
    port->link = link;
    port->no_carrier = false; /* a link that is up proves that there is a carrier */
    port->backoff = 0;
    port->dial_at = ROUTER_NEVER;
    port->reason[0] = port->turned_away.last[0] = '\0';
    port_hour_note(r, link->port); /* before it has carried anything */
    port->connects++;
    port->up_since = router_now(r);
    log_info("port %s: link to node %u is up (%s)",
             torus_port_name(r->torus, r->rank, link->port, name), port->neighbour, link->address);
    rates_link_up(r, link->port);
    topology_set_self(&r->topology, link->port, true);
    faults_clear(r, link->port);
    flood_mark_all_unsent(r, link->port);
    faults_tell_all(r, link->port);
    flood_self_changed(r);
}

static void add_to_totals(struct port *port, const struct link *link)
{
    port->before.tx_bytes += link->tx_bytes;
    port->before.rx_bytes += link->rx_bytes;
    port->before.retransmits += link->retransmits;
    port->before.placed_bytes += link->placed_bytes;
}

void port_link_gone(struct link *link, const char *reason)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];

    if (link->up) {
        add_to_totals(port, link);
        port->link = NULL;
        outgoing_clear(&r->outgoing, &port->control);
        outgoing_clear(&r->outgoing, &port->relay);
        if (port->holds)
            send_release(r, link->port);
        flood_lost(r, link->port);
        port_note(r, link->port, reason);
        topology_set_self(&r->topology, link->port, false);
        if (!r->stopping)
            flood_self_changed(r);
    } else {
        LL_DELETE(port->candidates, link);
        if (link->stranger == NULL && link->probe.told)
            ; /* the port already has the reason: the probe failed */
        else if (link->dialled || link->stranger == NULL)
            port_note(r, link->port, reason);
        else if (!port->no_carrier && !port->flapping.held)
            turned_away_note(r, link->port, link->address, reason);
    }
    if (link->dialled)
        redial_later(r, link->port);
}

/* --- links that flap --- */

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

/* --- the state --- */

const char *port_state_name(enum port_state state)
{
    switch (state) {
    case PORT_UNUSED:
        return "unused";
    case PORT_WAITING:
        return "waiting";
    case PORT_DIALLING:
        return "dialling";
    case PORT_HELLO:
        return "hello";
    case PORT_PROBING:
        return "probing";
    case PORT_HELD:
        return "held";
    case PORT_UP:
        return "up";
    }
    return "unknown";
}

/* Whether the neighbour has proved itself, and the probe is under way. */
static bool is_probing(const struct port *port)
{
    const struct link *link = port->candidates;

    while (link != NULL && link->stranger != NULL)
        link = link->next;
    return link != NULL;
}

void router_port_traffic(struct router *r, unsigned i, struct port_traffic *traffic)
{
    const struct port *port = &r->port[i];

    *traffic = (struct port_traffic){0};
    if (port->link == NULL)
        return;
    traffic->tx_bytes = port->link->tx_bytes;
    traffic->rx_bytes = port->link->rx_bytes;
    traffic->queue_bytes = port->control.bytes + port->relay.bytes;
    r->io.stat(r->io.context, port->link->connection, &traffic->stat);
    port->link->retransmits = traffic->stat.retransmits;
}

void router_port_info(struct router *r, unsigned i, struct port_info *info)
{
    const struct port *port = &r->port[i];
    struct port_traffic traffic;
    const struct fault_report fault = {r->rank, i, port->fault.now};

    *info = (struct port_info){
        .neighbour = port->neighbour, .connects = port->connects, .totals = port->before};
    (void)snprintf(info->reason, sizeof info->reason, "%s", port->reason);
    if (port->fault.now.code >
        LINK_FAULT_MTU) /* for a fault of the MTU, the port's reason says more */
        link_fault_text(r->torus, &fault, info->reason, sizeof info->reason);
    if (port->neighbour == TORUS_NO_NODE) {
        info->state = PORT_UNUSED;
    } else if (port->link != NULL) {
        info->state = PORT_UP;
        router_port_traffic(r, i, &traffic);
        info->tx_bytes = traffic.tx_bytes;
        info->rx_bytes = traffic.rx_bytes;
        info->queue_bytes = traffic.queue_bytes;
        info->stat = traffic.stat;
        info->up_ns = elapsed(port->up_since, router_now(r));
        info->encrypted = port->link->encrypted;
        if (port->link->has_key)
            (void)key_id_text(port->link->key, info->key);
        info->clock_known = link_clock_ahead(&port->link->clock, router_now(r), &info->clock_ahead,
                                             &info->clock_error);
        info->totals.tx_bytes += info->tx_bytes;
        info->totals.rx_bytes += info->rx_bytes;
        info->totals.retransmits += info->stat.retransmits;
        info->totals.placed_bytes += port->link->placed_bytes;
    } else if (port->flapping.held) {
        const uint64_t now = router_now(r), until = flapping_deadline(port);
        info->state = PORT_HELD;
        info->held_ns = until == ROUTER_NEVER ? port->flapping.hold : elapsed(now, until);
        if (!port->no_carrier)
            (void)snprintf(info->reason, sizeof info->reason,
                           "flaps: used again when it has been quiet for %.1f s more",
                           (double)info->held_ns / (double)SECONDS);
    } else if (port->candidates != NULL) {
        info->state = is_probing(port) ? PORT_PROBING : PORT_HELLO;
    } else {
        info->state = port->dialling ? PORT_DIALLING : PORT_WAITING;
    }
    port_hour_fill(r, i, info);
    router_port_rates(r, i, &info->rates);
}
