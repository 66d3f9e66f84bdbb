/* From `go` until this node and all below it are done: rounds and repetitions. */
#ifndef TORUSD_EXCHANGE_PHASES_ROUNDS_H
#define TORUSD_EXCHANGE_PHASES_ROUNDS_H

#include "daemon/exchange/record/attempt.h"

/* Root: all are ready. */
void rounds_begin(struct attempt *x);
/* Goes on as far as it can. */
void rounds_advance(struct attempt *x);
/* The next repetition is due at a root without children, which has let the rest of its process run in between. */
bool rounds_are_due(const struct attempt *x);
void rounds_resume(struct attempt *x);
/* Messages. Each returns 0, or -1 with *e if the neighbour is to blame. */
int go_heard(struct attempt *x, unsigned port, const struct peer_go *message, struct error *e);
int round_done_heard(struct attempt *x, unsigned port, const struct peer_round_done *done,
                     struct error *e);
int round_go_heard(struct attempt *x, unsigned port, const struct peer_round_go *message,
                   struct error *e);
int repeated_heard(struct attempt *x, unsigned port, const struct peer_repeated *repeated,
                   struct error *e);
int done_heard(struct attempt *x, unsigned port, const struct peer_done *done, struct error *e);

#endif
