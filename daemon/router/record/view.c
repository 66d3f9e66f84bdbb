/* What a router tells of itself. */
#include <stdio.h>

#include "daemon/router/record/internal.h"

struct outgoing_pool *router_outgoing(struct router *r)
{
    return &r->outgoing;
}

const struct topology *router_topology(const struct router *r)
{
    return &r->topology;
}

const struct torus *router_torus(const struct router *r)
{
    return r->torus;
}

uint32_t router_rank(const struct router *r)
{
    return r->rank;
}

uint64_t router_boot(const struct router *r)
{
    return r->boot;
}

uint64_t router_now(const struct router *r)
{
    return r->io.now(r->io.context);
}

void router_random(struct router *r, void *buffer, size_t size)
{
    r->io.random(r->io.context, buffer, size);
}

struct slab_pool *router_pool(struct router *r)
{
    return r->pool;
}

bool router_beats(const struct router *r)
{
    for (unsigned i = 0; i < torus_ports(r->torus); i++)
        if (r->port[i].link != NULL)
            return true;
    return false;
}

uint64_t router_heartbeat(const struct router *r)
{
    return r->heartbeat;
}

uint64_t router_silence(const struct router *r)
{
    return r->silence;
}

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

/* The neighbour has proved itself there. */
static bool is_probing(const struct port *port)
{
    const struct link *link = port->candidates;

    while (link != NULL && link->stranger != NULL)
        link = link->next;
    return link != NULL;
}

void router_port_info(struct router *r, unsigned i, struct port_info *info)
{
    const struct port *port = &r->port[i];
    const struct fault_report fault = {r->rank, i, port->fault.now};

    *info = (struct port_info){.neighbour = port->neighbour, .connects = port->connects};
    (void)snprintf(info->reason, sizeof info->reason, "%s", port->reason);
    if (port->fault.now.code > LINK_FAULT_MTU) /* of the MTU, the reason says more */
        link_fault_text(r->torus, &fault, info->reason, sizeof info->reason);
    if (port->neighbour == TORUS_NO_NODE) {
        info->state = PORT_UNUSED;
    } else if (port->link != NULL) {
        info->state = PORT_UP;
        info->tx_bytes = port->link->tx_bytes;
        info->rx_bytes = port->link->rx_bytes;
        info->up_ns = router_now(r) - port->up_since;
        info->encrypted = port->link->encrypted;
        if (port->link->has_key)
            (void)key_id_text(port->link->key, info->key);
        r->io.stat(r->io.context, port->link->connection, &info->stat);
    } else if (port->flapping.held) {
        const uint64_t now = router_now(r), until = port_release_deadline(port);
        info->state = PORT_HELD;
        info->held_ns = until == ROUTER_NEVER ? port->flapping.hold : until > now ? until - now : 0;
        if (!port->no_carrier)
            (void)snprintf(info->reason, sizeof info->reason,
                           "flaps: used again when it has been quiet for %.1f s more",
                           (double)info->held_ns / (double)SECONDS);
    } else if (port->candidates != NULL) {
        info->state = is_probing(port) ? PORT_PROBING : PORT_HELLO;
    } else {
        info->state = port->dialling ? PORT_DIALLING : PORT_WAITING;
    }
}
