/* Finds out which nodes have not made a call that is late. The node that notices asks the root, up the group's
 * tree. The root asks all nodes, down the tree; their answers go up again; and the root sends the result down
 * to all nodes, for the node that asked. That node decides what to do, because the call may have ended by then. */
#pragma once

#include "daemon/torusd/group/record/call.h"

#define CENSUS_ALL_CALLED "all have called it"

/* Asks the root about a call that is late here. late_calls_reported() gets the result, unless the call has
 * ended. */
void census_ask(struct session *s, const struct call *c);
/* Handle messages; each returns 0, or -1 with *e. */
int census_heard(struct session *s, unsigned port, const struct peer_group_census *question,
                 struct error *e);
int census_answered(struct session *s, unsigned port, const struct peer_group_answer *answer,
                    struct error *e);
int census_reported(struct session *s, const struct peer_group_report *report, struct error *e);
/* Root: stops waiting for nodes that have not answered before the deadline. */
void census_tick(struct session *s);
