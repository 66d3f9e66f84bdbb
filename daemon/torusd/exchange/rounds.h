/* Rounds and repetitions: from `go` until this node and all nodes below it are done. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Root: sends `go`, because all nodes are ready. */
void rounds_begin(struct attempt *x);
/* Continues the rounds as far as possible now. */
void rounds_advance(struct attempt *x);
/* Whether the next repetition should start now. Only a root without children waits like this, so that the rest
 * of its process can run between two repetitions. */
bool rounds_are_due(const struct attempt *x);
/* Starts the next repetition. */
void rounds_resume(struct attempt *x);
/* Handle messages. Each returns 0, or -1 with *e if the neighbour is to blame. */
int go_heard(struct attempt *x, unsigned port, const struct peer_go *message, struct error *e);
int round_done_heard(struct attempt *x, unsigned port, const struct peer_round_done *done,
                     struct error *e);
int round_go_heard(struct attempt *x, unsigned port, const struct peer_round_go *message,
                   struct error *e);
int repeated_heard(struct attempt *x, unsigned port, const struct peer_repeated *repeated,
                   struct error *e);
int done_heard(struct attempt *x, unsigned port, const struct peer_done *done, struct error *e);
