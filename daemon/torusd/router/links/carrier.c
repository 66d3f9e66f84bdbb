#include "daemon/torusd/router/links/carrier.h"

#include <stdio.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/router/flooding/faults.h"
#include "daemon/torusd/router/links/link.h"
#include "daemon/torusd/router/ports/flapping.h"
#include "daemon/torusd/router/ports/port.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"

static void carrier_gone(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];
    const bool held = port->flapping.held;
    struct error why;

    if (!port->no_carrier)
        flapping_lost(r, i, 0);
    faults_clear(r, i); /* the next cable that is plugged in may be another one */
    (void)error_set(&why, ERROR_LINK, "%s", fault);
    if (port->link != NULL)
        link_give_up(port->link, &why, false);
    port->no_carrier = false; /* so that port_note() also tells a new fault, */
    if (!held)                /* but not every loss of a link that flaps */
        port_note(r, i, fault);
    (void)snprintf(port->reason, sizeof port->reason, "%s", fault);
    port->no_carrier = true;
    while (port->candidates != NULL)
        link_give_up(port->candidates, &why, false);
}

static void carrier_back(struct router *r, unsigned i)
{
    struct port *port = &r->port[i];
    char name[TORUS_PORT_NAME_SIZE];

    port->no_carrier = false;
    (void)snprintf(port->reason, sizeof port->reason, "the carrier is back");
    if (!port->flapping.held)
        log_info("port %s to node %u: %s", torus_port_name(r->torus, r->rank, i, name),
                 port->neighbour, port->reason);
    port->flapping.until = router_now(r) + port->flapping.hold;
    port->backoff = 0;
    /* A dial that is under way would wait until TCP retransmits a lost packet. */
    if (port_dials(r, i) && port->candidates == NULL && !port->flapping.held)
        port_dial(r, i);
}

void router_carrier(struct router *r, unsigned i, const char *fault)
{
    struct port *port = &r->port[i];

    r->now = router_now(r);
    if (port->neighbour == TORUS_NO_NODE || r->stopping)
        return;
    if (fault != NULL)
        carrier_gone(r, i, fault);
    else if (port->no_carrier)
        carrier_back(r, i);
}
