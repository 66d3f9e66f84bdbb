/* Finished outputs of this node whose outcome is unknown or cannot be carried out yet. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Adds a doubt about this attempt's output, and takes x->doubt over, which was allocated in advance, so that
 * this cannot fail. `decided`: the exchange is known to be committed, but its output could not be put in place. */
void in_doubt_add(struct attempt *x, bool decided);
/* Carries out a known outcome: puts the output in place or removes it. Returns false if there is no doubt with
 * this id. */
bool in_doubt_resolve(struct exchanges *exchanges, const struct exchange_id *id, bool committed);
/* Returns the number of doubts about exchanges of this root. */
unsigned in_doubt_about(const struct exchanges *exchanges, uint32_t root);
/* Loads the doubts that were on record when this node stopped. Returns 0, or -1 with *e. */
int in_doubt_load(struct exchanges *exchanges, struct error *e);
/* Frees all doubts; they stay on record on disk. */
void in_doubt_free(struct exchanges *exchanges);
