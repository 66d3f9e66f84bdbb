/* Late calls: time limits, which nodes have not made a call, and which have called differently. */
#pragma once

#include "daemon/torusd/group/call.h"
#include "daemon/torusd/group/state.h"

/* Returns when timers_tick() is due (as router_now()), or ROUTER_NEVER. */
uint64_t timers_deadline(const struct session *s);
/* Asks about calls that are late, and fails those whose census has no answer. */
void timers_tick(struct session *s, uint64_t now);

/* Finds out which nodes have not made a call that is late. The node that notices asks the root, up the group's
 * tree. The root asks all nodes, down the tree; their answers go up again; and the root sends the result down
 * to all nodes, for the node that asked. That node decides what to do, because the call may have ended by then. */

/* Handle messages; each returns 0, or -1 with *e. */
int census_heard(struct session *s, unsigned port, const struct peer_group_census *question,
                 struct error *e);
int census_answered(struct session *s, unsigned port, const struct peer_group_answer *answer,
                    struct error *e);
int census_reported(struct session *s, const struct peer_group_report *report, struct error *e);

/* Finds members that call differently and wait for each other without hearing anything. A member sends a call
 * that makes no progress to its neighbours in the part, repeatedly, and they compare it with their call of the
 * same number, which may be under way or over. `now`: as router_now(). */

/* Handles a neighbour's message. Returns 0, or -1 with *e if no correct neighbour sends it. */
int compare_heard(struct session *s, unsigned port, const struct peer_group_compare *message,
                  struct error *e);
