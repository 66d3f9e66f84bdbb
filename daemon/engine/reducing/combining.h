/* Chunks are combined, delivered here, and sent on their way down. */
#ifndef TORUSD_ENGINE_REDUCING_COMBINING_H
#define TORUSD_ENGINE_REDUCING_COMBINING_H

#include "daemon/engine/reducing/state.h"

/* Combines the piece's next chunk, in the order that reducing.h says. Returns 1 with *out, whose reference is the
 * caller's; 0 if the source is not ready; -1: the engine has failed. */
int reducing_combine(struct reducing *s, struct reducing_round *r, uint32_t index,
                     struct extent *out);

/* Writes a chunk of the result to the sink. Returns 0, or -1: the engine has failed. */
int reducing_deliver(struct reducing *s, struct reducing_round *r, uint32_t index, uint32_t chunk,
                     const struct extent *bytes);

/* A chunk of the result, which all are to have, goes down the tree. */
void reducing_send_down(struct reducing *s, struct reducing_round *r, uint32_t index,
                        const struct extent *bytes);

/* Something of a tree has come, or may leave: if its next chunk can be combined, that is done now,
 * at the owner, or when the port to the parent asks for it. `r` may be NULL: nothing is done. */
void reducing_consider(struct reducing *s, struct reducing_round *r, uint32_t index);

#endif
