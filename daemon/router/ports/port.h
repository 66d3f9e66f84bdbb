/* One port: dialled again and again, or listened on; at most one link that is up. */
#ifndef TORUSD_ROUTER_PORTS_PORT_H
#define TORUSD_ROUTER_PORTS_PORT_H

#include <stdbool.h>

struct link;
struct router;

/* Whether this side of the cable dials; else it listens. */
bool port_dials(unsigned port);

/* Dials now. */
void port_dial(struct router *r, unsigned port);

/* Why the port is not up: logged once, not at every try. */
void port_note(struct router *r, unsigned port, const char *reason);

/* A candidate has become the link of its port; there is no other. */
void port_link_up(struct link *link);

/* A link, or a candidate, leaves its port, and is dialled again later if it was dialled. The caller frees it. */
void port_link_gone(struct link *link, const char *reason);

/* io->dial() has not led to a connection. `reason` is copied; it is dialled again later. */
void router_dial_failed(struct router *r, unsigned port, const char *reason);

/* What made the last dial of `port` fail, or what a dial under way relies on, has changed: it is dialled
 * at once. */
void router_dial_again(struct router *r, unsigned port);

/* The `-` side of `port` cannot listen for its neighbour, as `fault` says (copied). NULL: it listens. */
void router_listening(struct router *r, unsigned port, const char *fault);

#endif
