#include "daemon/torusd/router/ports/port_hour.h"

#include <string.h>

#include "daemon/torusd/router/ports/port_info.h"
#include "daemon/torusd/router/record/router_record.h"
#include "daemon/torusd/router/record/view.h"

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

void port_hour_fill(struct router *r, unsigned i, struct port_info *info)
{
    const struct port *port = &r->port[i];
    uint64_t value[LAST_HOUR_VALUES], risen[LAST_HOUR_VALUES];

    count_port(port, value);
    info->hour_ns = last_hour_risen(&port->hour, router_now(r), value, risen);
    info->hour_tx_bytes = risen[PORT_HOUR_SENT];
    info->hour_retransmits = risen[PORT_HOUR_RETRANSMITS];
    info->hour_connects = (uint32_t)risen[PORT_HOUR_CONNECTS];
}
