/* In an attempt that resumes an earlier one, each node tells all other nodes what has arrived there. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Tells the other nodes what has arrived here, unless this node has already done so. Returns 0, or -1 with *e. */
int progress_tell(struct attempt *x, struct error *e);
/* Handles another node's message about what has arrived there. Returns 0, or -1 with *e if the neighbour is to
 * blame. */
int arrived_heard(struct attempt *x, unsigned port, const struct peer_arrived *message,
                  struct error *e);
