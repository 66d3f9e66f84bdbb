/* The rounds of a reduction: how they begin and end. */
#ifndef TORUSD_ENGINE_REDUCING_ROUNDS_H
#define TORUSD_ENGINE_REDUCING_ROUNDS_H

#include "daemon/engine/reducing/state.h"

/* The round's slot, made ready for it if that is its first use. NULL without memory: the engine has failed. */
struct reducing_round *reducing_open_round(struct reducing *s, uint64_t number);

/* Ends the rounds that are over, the oldest first. */
void reducing_finish_rounds(struct reducing *s);

/* Frees what the slots of the window own. */
void reducing_free_rounds(struct reducing *s);

#endif
