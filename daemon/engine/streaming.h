/* Streaming execution: no step waits for another. A piece (cut.h) leaves a node as soon as part of it has
 * arrived. A port sends the pieces of the oldest round first; among these the piece with the longest way to
 * go, at most one frame of it at a time. All bytes that are ready for a port leave as one frame, which
 * names its pieces by their places in the order that both ends of the channel know
 * (schedule/routes/passages.h).
 *
 * In an allgather (engine_setup.gather) received bytes leave by each port by which their tree continues, by
 * some ports sooner than by others; the bytes are held once. The node's own block is read once, too, by
 * whichever port is the first to need more of it. */
#ifndef TORUSD_ENGINE_STREAMING_H
#define TORUSD_ENGINE_STREAMING_H

#include "daemon/engine/engine.h"
#include "daemon/schedule/routes/passages.h"

/* Bytes: blocks of equal size are not split into smaller pieces than this. */
#define STREAMING_LEAST_PIECE 256u

/* Returns an engine that accepts frames of the first `window` rounds at once; engine_free() frees it.
 * `passages` is borrowed, and must belong to an allgather algorithm if and only if setup->gather is set;
 * all-port algorithms only. Returns NULL with *e if there is no memory. */
struct engine *streaming_new(const struct engine_setup *setup, const struct passages *passages,
                             struct error *e);

#endif
