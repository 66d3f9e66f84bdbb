/* How doubts and decisions come together: nodes in doubt ask, roots remind, nodes confirm. */
#ifndef TORUSD_EXCHANGE_COMMIT_OUTCOME_MESSAGES_H
#define TORUSD_EXCHANGE_COMMIT_OUTCOME_MESSAGES_H

#include "daemon/exchange/record/exchange_record.h"
#include "proto/peer/peer_message.h"

/* Asks the roots about this node's doubts. */
void outcome_ask(struct exchanges *all);
/* Reminds nodes that have not confirmed this node's decisions. */
void outcome_remind(struct exchanges *all, uint64_t now);
/* Nanoseconds until the next look at them. */
uint64_t outcome_pause(const struct exchanges *all);
/* Messages, for this node or to be passed on. Each returns 0, or -1 with *e if the neighbour is to blame. */
int outcome_confirm_heard(struct exchanges *all, unsigned port, const struct peer_confirm *message,
                          struct error *e);
int outcome_query_heard(struct exchanges *all, unsigned port,
                        const struct peer_outcome_query *query, struct error *e);
int outcome_heard(struct exchanges *all, unsigned port, const struct peer_outcome *answer,
                  struct error *e);

#endif
