/* Times that several files use. */
#pragma once

#include "daemon/torusd/exchange/interface/exchange_types.h"

/* How long the root waits after the first lost link before it retries: the links of a process that dies are not
 * all reported at once, and the exchange may be able to finish without that link. */
#define LINK_LOSS_GATHER_TIME (50 * MILLISECONDS)
/* How long a node waits for the root's verdict. */
#define VERDICT_TIME (4 * SECONDS)
/* A node that waits for its group's restart asks the root after this time. It is longer than nodes remember
 * verdicts, because a verdict may have been flooded while this node was cut off. */
#define ASK_TIME (10 * SECONDS)
/* How often a node in doubt asks, and a root reminds nodes that have not confirmed: ASK_EVERY while the torus
 * is whole; otherwise LOOK_EVERY, because a way to these nodes may open at any time. */
#define ASK_EVERY (2 * SECONDS)
#define LOOK_EVERY (ASK_EVERY / 4)
/* How long a job without a timeout waits to be started, or for nodes that are down. */
#define LONGEST_WAIT (3600 * SECONDS)
/* How much longer than the root other nodes wait. */
#define PEER_PATIENCE (5 * SECONDS)
