/* Counters of exchanges since the start of the daemon, for monitoring. */
#pragma once

#include "daemon/lib/base/histogram.h"
#include "daemon/torusd/exchange/interface/exchange_types.h"

struct attempt;

struct exchange_totals {
    /* How many attempts have entered each state in which an attempt has ended; the other states stay 0. */
    uint64_t ended[OPERATIONS][EXCHANGE_STATES];
    /* Bytes that have been delivered here by engines that are gone, or in repetitions that are over. */
    uint64_t delivered_bytes;
    struct histogram duration; /* in seconds, of attempts that have succeeded, without groups */
};

/* Counts that an attempt has entered a state in which it has ended. */
void totals_note_end(const struct attempt *x);
/* Adds what an attempt's engine has delivered in this repetition; to be called before the engine forgets that. */
void totals_note_delivered(const struct attempt *x);
