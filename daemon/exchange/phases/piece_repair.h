/* Pieces of files that have arrived damaged are asked for again. */
#ifndef TORUSD_EXCHANGE_PHASES_PIECE_REPAIR_H
#define TORUSD_EXCHANGE_PHASES_PIECE_REPAIR_H

#include "daemon/exchange/record/attempt.h"

/* Asks for what is damaged here, and answers what others have asked for, as far as that goes now. */
void piece_repair_advance(struct attempt *x);
/* When what was asked for should have come; ROUTER_NEVER: nothing was. */
uint64_t piece_repair_deadline(const struct attempt *x);
/* It has not come by then. */
void piece_repair_late(struct attempt *x);
/* Messages: a question, and an answer. Each returns 0, or -1 with *e if the neighbour is to blame. */
int again_heard(struct attempt *x, unsigned port, const struct peer_again *message,
                struct error *e);
int mended_heard(struct attempt *x, unsigned port, const struct peer_mended *message,
                 struct error *e);

#endif
