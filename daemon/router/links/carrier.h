/* The loss of a carrier, and its return. */
#ifndef TORUSD_ROUTER_LINKS_CARRIER_H
#define TORUSD_ROUTER_LINKS_CARRIER_H

struct router;

/* The cable of `port` cannot carry anything, as `fault` says ("no carrier on eth1"; copied): its link is
 * given up. NULL: it can again, and is dialled at once. It is taken for good before anything is told. */
void router_carrier(struct router *r, unsigned port, const char *fault);

#endif
