/* How a finished attempt is committed: the root's decision, and how each node carries it out. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"
#include "proto/peer/peer_message.h"

/* Root: records the decision to commit on disk, and then tells all nodes. Call it when all nodes are done. If
 * the decision cannot be recorded, the attempt fails. */
void commit_decide(struct attempt *x);
/* Puts this node's output in place, as far as that is possible now. If that fails, the output stays under its
 * temporary name, and this node tries again later. */
void commit_advance(struct attempt *x);
/* Handles the root's decision, which the parent has sent. Returns 0. */
int commit_heard(struct attempt *x, unsigned port, const struct peer_commit *message,
                 struct error *e);
/* Stops waiting for children that are late: each of them confirms to the root by itself. */
void commit_stop_waiting(struct attempt *x);
/* Stops waiting for children whose links went down: they confirm over other links. */
void commit_topology(struct attempt *x);
/* Root: returns when the client is told of the end even if some nodes have not confirmed, in nanoseconds of the
 * router's clock. */
uint64_t commit_deadline(const struct attempt *x);

/* --- messages about outcomes: nodes in doubt ask roots, roots remind nodes, nodes confirm --- */

/* Asks the roots for the outcomes that this node is in doubt about. */
void outcome_ask(struct exchanges *exchanges);
/* Reminds nodes that have not confirmed this node's decisions. `now`: nanoseconds of the router's clock. */
void outcome_remind(struct exchanges *exchanges, uint64_t now);
/* Returns the nanoseconds until doubts and decisions should be checked again. */
uint64_t outcome_pause(const struct exchanges *exchanges);
/* Handle messages that are for this node or pass through it. Each returns 0, or -1 with *e if the neighbour is
 * to blame. */
int outcome_confirm_heard(struct exchanges *exchanges, unsigned port,
                          const struct peer_confirm *message, struct error *e);
int outcome_query_heard(struct exchanges *exchanges, unsigned port,
                        const struct peer_outcome_query *query, struct error *e);
int outcome_heard(struct exchanges *exchanges, unsigned port, const struct peer_outcome *answer,
                  struct error *e);
