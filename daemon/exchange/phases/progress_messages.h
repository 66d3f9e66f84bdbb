/* In an attempt that goes on where another one was, every node tells all others what has arrived there. */
#ifndef TORUSD_EXCHANGE_PHASES_PROGRESS_MESSAGES_H
#define TORUSD_EXCHANGE_PHASES_PROGRESS_MESSAGES_H

#include "daemon/exchange/record/attempt.h"

/* Tells the others what has arrived here, unless that has been done. Returns 0, or -1 with *e. */
int progress_tell(struct attempt *x, struct error *e);
/* What has arrived at another node. Returns 0, or -1 with *e if the neighbour is to blame. */
int arrived_heard(struct attempt *x, unsigned port, const struct peer_arrived *message,
                  struct error *e);

#endif
