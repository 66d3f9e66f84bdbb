/* Streaming execution: no step waits for another. A piece (cut.h) leaves a node as soon as part of it has
 * arrived. A port sends the pieces of the oldest round first, and among these the piece with the longest path
 * to go first, one frame at a time. All bytes that are ready for a port leave as one frame, which names its
 * pieces by their places in the order that both ends of the channel know (schedule/passages.h).
 *
 * In an allgather (engine_setup.gather) received bytes leave by each port through which their tree continues; some
 * ports may be ahead of others, and the bytes are held once for all. The node's own block is read once, too,
 * whenever the first port needs more of it. */
#pragma once

#include "daemon/lib/schedule/passages.h"
#include "daemon/torusd/engine/engine.h"

/* Bytes: blocks of equal size are not split into smaller pieces than this. */
#define STREAMING_LEAST_PIECE 256u

/* Returns an engine that accepts frames of the first `window` rounds at once; engine_free() frees it.
 * `passages` is borrowed, and must belong to an allgather algorithm if and only if setup->gather is set;
 * all-port algorithms only. Returns NULL with *e if there is no memory. */
struct engine *streaming_new(const struct engine_setup *setup, const struct passages *passages,
                             struct error *e);
