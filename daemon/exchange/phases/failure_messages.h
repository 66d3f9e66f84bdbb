/* What nodes hear of each other about attempts that fail. */
#ifndef TORUSD_EXCHANGE_PHASES_FAILURE_MESSAGES_H
#define TORUSD_EXCHANGE_PHASES_FAILURE_MESSAGES_H

#include "daemon/exchange/record/exchange_record.h"
#include "proto/peer/peer_message.h"

/* A node's objection, for this node or on its way to the root. Returns 0, or -1 with *e if the neighbour is to
 * blame. */
int objection_heard(struct exchanges *all, unsigned port, const struct peer_objection *message,
                    struct error *e);
/* The root's verdict. Returns 0. */
int verdict_heard(struct exchanges *all, unsigned port, const struct peer_verdict *message,
                  struct error *e);
/* The link to the parent is up again: says this node's objections once more. */
void objections_repeat(struct exchanges *all, unsigned port);

#endif
