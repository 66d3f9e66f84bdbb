/* Messages about outcomes: nodes in doubt ask roots, roots remind nodes, nodes confirm. */
#pragma once

#include "daemon/torusd/exchange/record/exchange_record.h"
#include "proto/peer/peer_message.h"

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
