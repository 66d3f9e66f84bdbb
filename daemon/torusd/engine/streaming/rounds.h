/* The rounds of a streaming engine: how they begin and end. */
#pragma once

#include "daemon/torusd/engine/streaming/state.h"

/* Returns the round's slot, and prepares it at its first use. NULL if there is no memory: the engine has
 * failed. */
struct streaming_round *streaming_open_round(struct streaming *s, uint64_t number);

/* Ends the rounds that are complete, the oldest first. */
void streaming_finish_rounds(struct streaming *s);

/* Frees what a slot of the window owns. */
void streaming_free_round(struct streaming_round *r);
