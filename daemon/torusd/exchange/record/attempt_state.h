/* Changes an attempt's state. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Sets an attempt's state, and frees what the new state does not need. To end an attempt, call attempt_end(). */
void attempt_enter(struct attempt *x, enum exchange_state state);
/* Counts that one source or sink of the attempt has been closed. */
void attempt_closed_one(struct attempt *x);
