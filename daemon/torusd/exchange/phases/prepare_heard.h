/* How a node handles its root's prepare. */
#pragma once

#include "daemon/torusd/exchange/record/exchange_record.h"
#include "proto/peer/peer_message.h"

/* Handles a prepare. Returns 0, also if this node objects; or -1 with *e if the neighbour is to blame. */
int prepare_heard(struct exchanges *exchanges, unsigned port, const struct peer_prepare *prepare,
                  struct error *e);
