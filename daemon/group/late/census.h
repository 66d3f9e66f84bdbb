/* Which nodes have not made a call that has not ended in time. The node that notices asks the root, up the group's
 * tree; the root asks all nodes, down the tree; their answers come up again; and the root sends the result down
 * to all, for the node that has asked. What becomes of the call is that node's affair: it may have ended by then. */
#ifndef TORUSD_GROUP_LATE_CENSUS_H
#define TORUSD_GROUP_LATE_CENSUS_H

#include "daemon/group/record/call.h"

#define CENSUS_ALL_CALLED "all have called it"

/* A call has not ended in time here. late_calls_reported() gets the result, unless the call has ended. */
void census_ask(struct session *s, const struct call *c);
/* Messages; the functions return 0, or -1 with *e. */
int census_heard(struct session *s, unsigned port, const struct peer_group_census *question,
                 struct error *e);
int census_answered(struct session *s, unsigned port, const struct peer_group_answer *answer,
                    struct error *e);
int census_reported(struct session *s, const struct peer_group_report *report, struct error *e);
/* At the root, its deadline has passed: nodes that have not answered are not waited for. */
void census_tick(struct session *s);

#endif
