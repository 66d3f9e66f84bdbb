/* How many exchanges there are and have been at this node; for monitoring. */
#pragma once

#include "daemon/torusd/exchange/record/totals.h"

struct exchange_counts {
    unsigned waiting; /* jobs that wait to be started, for their next attempt, or for other nodes */
    unsigned under_way; /* attempts that other nodes know of, without groups */
    unsigned in_doubt;
    unsigned unconfirmed;          /* decisions of this node that some nodes have not confirmed */
    struct exchange_totals totals; /* with what the engines under way have delivered */
};

/* Fills *counts. */
void exchanges_count(const struct exchanges *exchanges, struct exchange_counts *counts);
