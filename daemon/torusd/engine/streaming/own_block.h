/* Reads a node's own block in an allgather, once for all ports by which it leaves. */
#pragma once

#include "daemon/torusd/engine/streaming/state.h"

/* To be called when the source may have new bytes: queues the round's flows again for which it had none. */
void streaming_requeue_starved(struct streaming *s, struct streaming_round *r);

/* Loads up to `most` bytes of a piece into the frame, and reads the missing ones for all ports. Returns how
 * many bytes; 0 if there are none yet, or the engine has failed. */
uint32_t streaming_move_shared(struct streaming *s, struct streaming_round *r, uint32_t index,
                               uint32_t most, struct outgoing *frame);
