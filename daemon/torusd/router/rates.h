/* What the links of this node can carry. In the order of trust: the nominal rate, which the user has given; what was
 * observed under load (observed.h); the rate that the card has negotiated. The smallest of those that are known is
 * stated with the link states, and a link carries the smaller of what its two ends state (topology_channel_rate()). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/nominal_rate.h"

struct connection_stat;
struct link;
struct router;

/* Where the rate comes from that plans use. */
enum rate_source {
    RATE_UNKNOWN,
    RATE_NOMINAL,
    RATE_NEGOTIATED,
    RATE_OBSERVED,
    RATE_NEIGHBOUR, /* the other end states a lower rate */
};

/* What is known about the link of a port, in kbit/s; 0: not known. */
struct port_rates {
    struct nominal_rate nominal; /* in Mbit/s */
    uint32_t negotiated;
    uint32_t observed; /* carried lately while data always waited for the link */
    uint32_t planned;  /* away from this node */
    enum rate_source source;
};

/* Sets the nominal rate of the link at a port. */
void router_set_nominal(struct router *r, unsigned port, struct nominal_rate mbit);

/* Sets the rate that the card at a port has negotiated, in kbit/s; 0: not known. */
void router_set_negotiated(struct router *r, unsigned port, uint32_t kbit);

/* Whether what nodes state of their links counts: all of them know how. A node sends them only then. */
bool router_knows_rates(const struct router *r);

/* Returns what the link at this port of `rank` can carry away from that node, in kbit/s; 0: not known. */
uint32_t router_channel_rate(const struct router *r, uint32_t rank, unsigned port);

/* Fills *rates with what is known about the link of a port of this node. */
void router_port_rates(const struct router *r, unsigned port, struct port_rates *rates);

/* To be called when a link has come up: what was observed of the one before does not count. */
void rates_link_up(struct router *r, unsigned port);

/* To be called after each heartbeat interval of a link that is up: observes it, and begins and ends probes
 * (filler.h). */
void rates_beat(struct link *link, const struct connection_stat *stat);

/* Returns the name of a source: "nominal". Static; "" if it is unknown. */
const char *rate_source_name(enum rate_source source);
