/* One function changes an attempt's state. */
#ifndef TORUSD_EXCHANGE_RECORD_ATTEMPT_STATE_H
#define TORUSD_EXCHANGE_RECORD_ATTEMPT_STATE_H

#include "daemon/exchange/record/attempt.h"

/* The attempt is in another state: what it has no longer is given back. Where that is an end: attempt_end(). */
void attempt_enter(struct attempt *x, enum exchange_state state);
/* One of its source and sink has been closed. */
void attempt_closed_one(struct attempt *x);

#endif
