/* The rounds of a streaming engine: how they begin and end. */
#ifndef TORUSD_ENGINE_STREAMING_ROUNDS_H
#define TORUSD_ENGINE_STREAMING_ROUNDS_H

#include "daemon/engine/streaming/state.h"

/* The round's slot, made ready for it if that is its first use. NULL without memory: the engine has failed. */
struct streaming_round *streaming_open_round(struct streaming *s, uint64_t number);

/* Ends the rounds that are over, the oldest first. */
void streaming_finish_rounds(struct streaming *s);

/* Frees what a slot of the window owns. */
void streaming_free_round(struct streaming_round *r);

#endif
