/* The loss of a carrier, and its return. */
#ifndef TORUSD_ROUTER_LINKS_CARRIER_H
#define TORUSD_ROUTER_LINKS_CARRIER_H

struct router;

/* The cable of `port` cannot carry anything, and `fault` says why ("no carrier on eth1"; copied): the
 * router gives up its link. NULL: the cable works again, and the router dials at once. The port already has
 * its new state when anyone hears of it. */
void router_carrier(struct router *r, unsigned port, const char *fault);

#endif
