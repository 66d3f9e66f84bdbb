/* Combines chunks, delivers them here, and sends them down the tree. */
#pragma once

#include "daemon/torusd/engine/reducing/state.h"

/* Combines the piece's next chunk, in the order of reducing.h. Returns 1 with *out, whose reference the
 * caller drops; 0 if the source is not ready; -1: the engine has failed. */
int reducing_combine(struct reducing *s, struct reducing_round *r, uint32_t index,
                     struct extent *out);

/* Writes a chunk of the result to the sink. Returns 0, or -1: the engine has failed. */
int reducing_deliver(struct reducing *s, struct reducing_round *r, uint32_t index, uint32_t chunk,
                     const struct extent *bytes);

/* Sends a chunk of a result for all nodes down the tree. */
void reducing_send_down(struct reducing *s, struct reducing_round *r, uint32_t index,
                        const struct extent *bytes);

/* To be called when a chunk of a tree has arrived, or may leave. If the tree's next chunk can be combined,
 * the owner combines it at once; other nodes combine it when the port to the parent asks for it. Does nothing
 * if `r` is NULL. */
void reducing_combine_if_ready(struct reducing *s, struct reducing_round *r, uint32_t index);
