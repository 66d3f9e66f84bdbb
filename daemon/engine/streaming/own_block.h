/* A node's own block in an allgather, which is read once for all ports by which it leaves. */
#ifndef TORUSD_ENGINE_STREAMING_OWN_BLOCK_H
#define TORUSD_ENGINE_STREAMING_OWN_BLOCK_H

#include "daemon/engine/streaming/state.h"

/* The source may have more for those flows of the round that it had nothing for: they line up again. */
void streaming_feed(struct streaming *s, struct streaming_round *r);

/* Moves up to `most` bytes of a piece into the frame, and reads what is missing of them for all ports. Returns
 * how many bytes; 0 if there are none yet, or the engine has failed. */
uint32_t streaming_move_shared(struct streaming *s, struct streaming_round *r, uint32_t index,
                               uint32_t most, struct outgoing *frame);

#endif
