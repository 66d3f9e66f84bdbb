/* What happens next: the one place that drives an attempt. */
#ifndef TORUSD_EXCHANGE_ADVANCE_H
#define TORUSD_EXCHANGE_ADVANCE_H

#include "daemon/exchange/record/attempt.h"

/* Goes on as far as what has been heard and done allows. */
void attempt_advance(struct attempt *x);

#endif
