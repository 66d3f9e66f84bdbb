/* Repairs: a node asks for damaged pieces of files again. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Asks for pieces that are damaged here, and answers requests of other nodes, as far as possible now. */
void piece_repair_advance(struct attempt *x);
/* Returns when the answer to the last request is late, in nanoseconds of the router's clock; ROUTER_NEVER: no
 * request is open. */
uint64_t piece_repair_deadline(const struct attempt *x);
/* Reports the piece as damaged, because the answer to the open request is late. The root then retries or fails
 * the attempt. */
void piece_repair_late(struct attempt *x);
/* Handle a query for a part of a piece, and the answer. Each returns 0, or -1 with *e if the neighbour is to
 * blame. */
int repair_query_heard(struct attempt *x, unsigned port, const struct peer_repair_query *message,
                       struct error *e);
int repair_part_heard(struct attempt *x, unsigned port, const struct peer_repair_part *message,
                      struct error *e);
