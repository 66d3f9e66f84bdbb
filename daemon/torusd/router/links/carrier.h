/* Handles the loss of a carrier, and its return. */
#pragma once

struct router;

/* To be called when the cable of `port` has failed; `fault` says why ("no carrier on eth1"; copied): the
 * router gives up the link. NULL: the cable works again, and the router dials at once. The port has its new
 * state before the handler is called. */
void router_carrier(struct router *r, unsigned port, const char *fault);
