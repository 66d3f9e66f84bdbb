/* One port: dialled again and again, or listened on; at most one link that is up. */
#include "daemon/router/internal.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"

#define BACKOFF_FIRST (50 * MILLISECONDS)
#define BACKOFF_MOST (2 * SECONDS)

bool port_dials(unsigned port)
{
    return torus_port_direction(port) > 0;
}

void port_dial(struct router *r, unsigned i)
{
    r->port[i].dial_at = ROUTER_NEVER;
    r->port[i].dialling = true;
    r->io.dial(r->io.context, i);
}

/* Logs a reason once, not at every try. */
static void note(struct router *r, unsigned i, const char *reason)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    if (strcmp(port->reason, reason) == 0)
        return;
    (void)snprintf(port->reason, sizeof port->reason, "%s", reason);
    if (!r->stopping)
        log_warning("port %s to node %u: %s", torus_port_name(i, name), port->neighbour, reason);
}

static void redial_later(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];
    uint64_t jitter;

    if (!port_dials(i) || r->stopping || port->dialling || port->dial_at != ROUTER_NEVER)
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
    note(r, port, reason);
    redial_later(r, port);
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
    link->up = true;
    port->link = link;
    port->backoff = 0;
    port->reason[0] = '\0';
    port->connects++;
    port->up_since = router_now(r);
    log_info("port %s: link to node %u is up (%s)", torus_port_name(link->port, name),
             port->neighbour, link->address);
    topology_set_self(&r->topology, link->port, true);
    flood_everything(r, link->port);
    flood_self_changed(r);
}

void port_link_gone(struct link *link, const char *reason)
{
    struct router *r = link->router;
    struct port *port = &r->port[link->port];

    if (link->up) {
        port->link = NULL;
        outgoing_clear(&r->outgoing, &port->control);
        outgoing_clear(&r->outgoing, &port->relay);
        if (port->holds)
            send_release(r, link->port);
        flood_lost(r, link->port);
        note(r, link->port, reason);
        topology_set_self(&r->topology, link->port, false);
        if (!r->stopping)
            flood_self_changed(r);
    } else {
        forget_candidate(port, link);
        /* While the neighbour is connected, a stranger's failure says nothing about the port. */
        if (port->link == NULL)
            note(r, link->port, reason);
        else if (!r->stopping)
            log_warning("a connection that is not the neighbour was rejected: %s", reason);
    }
    if (link->dialled)
        redial_later(r, link->port);
}
