/* Times that several files go by. */
#ifndef TORUSD_EXCHANGE_RECORD_TIMES_H
#define TORUSD_EXCHANGE_RECORD_TIMES_H

#include "daemon/exchange/interface/exchange_types.h"

/* From the first link that goes down until the root retries without it: the links of a process that dies are not all
 * reported at once, and the exchange may be able to finish without that link. */
#define LINK_LOSS_GATHER_TIME (50 * MILLISECONDS)
/* How long a node waits for the root's verdict. */
#define VERDICT_TIME (4 * SECONDS)
/* A node that waits for a restart of its group asks the root when it has heard nothing for so long: longer than nodes
 * remember that they have passed a verdict on, which may have gone past this node while it was cut off. */
#define ASK_TIME (10 * SECONDS)
/* How often a node in doubt asks, and a root reminds nodes that have not confirmed; and how often either looks whether
 * the torus is whole, without which nobody is asked. */
#define ASK_EVERY (2 * SECONDS)
#define LOOK_EVERY (ASK_EVERY / 4)
/* How long a job without a timeout of its own waits to be started, or for nodes that are down. */
#define LONGEST_WAIT (3600 * SECONDS)
/* Other nodes wait that much longer than the root. */
#define PEER_PATIENCE (5 * SECONDS)

#endif
