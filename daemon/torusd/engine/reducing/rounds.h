/* The rounds of a reduction: how they begin and end. */
#pragma once

#include "daemon/torusd/engine/reducing/state.h"

/* Returns the round's slot, and prepares it at its first use. NULL if there is no memory: the engine has
 * failed. */
struct reducing_round *reducing_open_round(struct reducing *s, uint64_t number);

/* Ends the rounds that are complete, the oldest first. */
void reducing_finish_rounds(struct reducing *s);

/* Frees what the slots of the window own. */
void reducing_free_rounds(struct reducing *s);
