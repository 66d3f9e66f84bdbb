/* Link states: tells all neighbours about changes of the topology. */
#ifndef TORUSD_ROUTER_FLOODING_FLOOD_H
#define TORUSD_ROUTER_FLOODING_FLOOD_H

#include <stdint.h>

#include "proto/error.h"
#include "proto/peer/peer_message.h"

#define CONFIRM_MINOR 2u /* the minor version of the peer protocol that has added confirmations */

struct router;

/* To be called after a link of this node has come up or gone down. */
void flood_self_changed(struct router *r);

#define CONFIRM_MINOR 2u /* the minor version of the peer protocol that has added confirmations */
/* States with which link states the IP routes of this node agree (daemon/routed/planner.h); 0: with none. */
void router_confirm(struct router *r, uint64_t confirmed);

/* Marks all link states as unsent at a port whose link has come up. */
void flood_mark_all_unsent(struct router *r, unsigned port);

/* Marks all link states as unsent at a port when router.port[].restate_at is reached. */
void flood_tick(struct router *r, unsigned port, uint64_t now);

/* Drops all claims of the neighbour at a port whose link is down. */
void flood_lost(struct router *r, unsigned port);

/* Sends the link states that have changed; due at router.flood_at. */
void flood_flush(struct router *r);

/* Handles a link state that the neighbour at a port has sent. Returns 0, or -1 with *e: such a state cannot
 * exist. */
int flood_heard(struct router *r, unsigned port, const struct peer_link_state *state,
                struct error *e);

/* Tells the handler about changes of the topology that it does not know yet. To be called when all bytes that
 * arrived together have been decoded. */
void flood_tell_handler(struct router *r);

#endif
