/* Reads a node's own block in an allgather, once for all ports by which it leaves. */
#ifndef TORUSD_ENGINE_STREAMING_OWN_BLOCK_H
#define TORUSD_ENGINE_STREAMING_OWN_BLOCK_H

#include "daemon/engine/streaming/state.h"

/* To be called when the source may have bytes for the flows of the round that it had none for: queues them
 * again. */
void streaming_feed(struct streaming *s, struct streaming_round *r);

/* Loads up to `most` bytes of a piece into the frame, and reads the missing ones for all ports. Returns how
 * many bytes; 0 if there are none yet, or the engine has failed. */
uint32_t streaming_move_shared(struct streaming *s, struct streaming_round *r, uint32_t index,
                               uint32_t most, struct outgoing *frame);

#endif
