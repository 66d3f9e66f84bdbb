/* Link states: tells all neighbours about changes of the topology. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/lib/base/limits.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct router;

#define FORWARD_LEASE (30 * SECONDS) /* how long router_forward() counts, while this node runs, */
#define FORWARD_GRACE (1 * SECONDS)  /* and how long after router_forward_lost() */

/* To be called after a link of this node has come up or gone down. */
void flood_self_changed(struct router *r);

/* States with which link states the IP routes of this node agree (daemon/lib/cluster/route_planner.h); 0: with none. */
void router_confirm(struct router *r, uint64_t confirmed);

/* States whether IP packets of other nodes may pass through this node. A yes is valid for FORWARD_LEASE, in which the
 * nodes that know of it repeat it. */
void router_forward(struct router *r, bool forwards);
/* The process that made the last such statement ended without withdrawing it. Its routes may still exist, and another
 * process may take them over, so a yes stays valid for FORWARD_GRACE. */
void router_forward_lost(struct router *r);

/* Whether what nodes say of `forwards` and `quiet` counts: all of them know these. A node sends them only then. */
bool router_knows_forwarding(const struct router *r);

/* States which ports are quiet. */
void flood_set_quiet(struct router *r, uint32_t quiet);

/* States what the ports can carry (topology_entry.rates; copied). NULL: nothing is known. */
void flood_set_rates(struct router *r, const uint32_t *rates);

/* Marks all link states as unsent at a port whose link has come up. */
void flood_mark_all_unsent(struct router *r, unsigned port);

/* Withdraws router_forward() at router.forwards_until. */
void flood_check_lease(struct router *r, uint64_t now);

/* Marks this node's link states as unsent when router.contest.overrule_at is reached. */
void flood_overrule(struct router *r, uint64_t now);

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
