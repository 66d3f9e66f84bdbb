/* The one function that drives an attempt. */
#ifndef TORUSD_EXCHANGE_ADVANCE_H
#define TORUSD_EXCHANGE_ADVANCE_H

#include "daemon/exchange/record/attempt.h"

/* Continues the attempt as far as possible with the messages that have arrived and the work that is complete. */
void attempt_advance(struct attempt *x);

#endif
