#include "daemon/torusd/router/ports/port.h"

#include <stdio.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/flooding/flood.h"
#include "daemon/torusd/router/ports/port_hour.h"
#include "daemon/torusd/router/ports/turned_away.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/send.h"
#include "daemon/torusd/router/record/view.h"

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

static void forget_candidate(struct port *port, const struct link *link)
{
    for (struct link **at = &port->candidates; *at != NULL; at = &(*at)->next)
        if (*at == link) {
            *at = link->next;
            return;
        }
}

void port_link_up(struct link *link)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];
    char name[TORUS_PORT_NAME_SIZE];

    forget_candidate(port, link);
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
        forget_candidate(port, link);
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
