/* One port: it dials until it succeeds, or listens, and has at most one link that is up. */
#pragma once

#include <stdbool.h>

struct link;
struct router;

/* Whether this side of the cable dials; else it listens. */
bool port_dials(const struct router *r, unsigned port);

/* Starts a dial. */
void port_dial(struct router *r, unsigned port);

/* Records why the port is not up. The log gets each reason once, not at every attempt. */
void port_note(struct router *r, unsigned port, const char *reason);

/* Makes a candidate the link of its port, which must have none. */
void port_link_up(struct link *link);

/* Removes a link or a candidate from its port. If the port had dialled that connection, it dials again later.
 * The caller frees the link. */
void port_link_gone(struct link *link, const char *reason);

/* To be called when io->dial() has failed. `reason` is copied; the port dials again later. */
void router_dial_failed(struct router *r, unsigned port, const char *reason);

/* Dials `port` at once. To be called when the cause of its last failure may have gone, or a dial under way
 * can no longer succeed. */
void router_dial_again(struct router *r, unsigned port);

/* To be called when `port`, a `-` port, cannot listen; `fault` says why (copied). NULL: it listens. */
void router_listening(struct router *r, unsigned port, const char *fault);
