#include "daemon/torusd/router/ports/port_info.h"

#include <stdio.h>

#include "daemon/torusd/router/ports/flapping.h"
#include "daemon/torusd/router/ports/port_hour.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"
#include "proto/elapsed.h"

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
}
