/* Link states: what changes in the topology is told to all neighbours. */
#ifndef TORUSD_ROUTER_FLOODING_FLOOD_H
#define TORUSD_ROUTER_FLOODING_FLOOD_H

#include <stdint.h>

#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct router;

/* A link of this node has come up or gone down. */
void flood_self_changed(struct router *r);

/* The neighbour at a port, whose link has come up, is to be told everything. */
void flood_everything(struct router *r, unsigned port);

/* It is told everything again when it is time. */
void flood_tick(struct router *r, unsigned port, uint64_t now);

/* The link of a port is down: what its neighbour has claimed counts no more. */
void flood_lost(struct router *r, unsigned port);

/* Sends what has changed; due at router.flood_at. */
void flood_flush(struct router *r);

/* The neighbour at a port tells of link states. Returns 0, or -1 with *e: they cannot be. */
int flood_heard(struct router *r, unsigned port, const struct peer_link_state *state,
                struct error *e);

/* What came in at once has been decoded: the handler is told what it has not been told yet. */
void flood_read(struct router *r);

#endif
