/* The one function that drives an attempt. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Continues the attempt as far as possible with the messages that have arrived and the work that is complete. */
void attempt_advance(struct attempt *x);
