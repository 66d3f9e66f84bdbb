/* Handles messages of other nodes about attempts that fail. */
#pragma once

#include "daemon/torusd/exchange/record/exchange_record.h"
#include "proto/peer/peer_message.h"

/* Handles a node's objection, which is for this node or on its way to the root. Returns 0, or -1 with *e if the
 * neighbour is to blame. */
int objection_heard(struct exchanges *exchanges, unsigned port,
                    const struct peer_objection *message, struct error *e);
/* Handles the root's verdict. Returns 0. */
int verdict_heard(struct exchanges *exchanges, unsigned port, const struct peer_verdict *message,
                  struct error *e);
/* Repeats this node's objections to the parent at this port, because the link to it is up again. */
void objections_repeat(struct exchanges *exchanges, unsigned port);
