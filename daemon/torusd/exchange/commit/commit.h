/* How a finished attempt is committed: the root's decision, and how each node carries it out. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Root: records the decision to commit on disk, and then tells all nodes. Call it when all nodes are done. If
 * the decision cannot be recorded, the attempt fails. */
void commit_decide(struct attempt *x);
/* Puts this node's output in place, as far as that is possible now. If that fails, the output stays under its
 * temporary name, and this node tries again later. */
void commit_advance(struct attempt *x);
/* Handles the root's decision, which the parent has sent. Returns 0. */
int commit_heard(struct attempt *x, unsigned port, const struct peer_commit *message,
                 struct error *e);
/* Starts to commit because the root's outcome arrived outside the commit wave. Children then confirm by
 * themselves. */
void commit_begin(struct attempt *x);
/* Takes a child's confirmation, to pass it on together with this node's own. Returns false if this node does
 * not wait for that child; the caller then passes the confirmation on. */
bool commit_collects(struct attempt *x, unsigned port, const uint32_t *rank, size_t count);
/* Stops waiting for children that are late: each of them confirms to the root by itself. */
void commit_stop_waiting(struct attempt *x);
/* Stops waiting for children whose links went down: they confirm over other links. */
void commit_topology(struct attempt *x);
/* Root: returns when the client is told of the end even if some nodes have not confirmed, in nanoseconds of the
 * router's clock. */
uint64_t commit_deadline(const struct attempt *x);
