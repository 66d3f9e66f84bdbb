/* Streaming execution: no step waits. A piece (cut.h) leaves a node as soon as part of it is there.
 * A port sends the pieces of the oldest round first, and of those the one with the longest way to
 * go, at most a frame's worth at a time. What is ready for a port leaves as one frame, which names
 * its pieces by their places in the order that both ends of the channel know (schedule/routes/passages.h).
 *
 * In an allgather (engine_setup.gather) what comes in leaves by each port that its tree goes on by,
 * by one sooner than by another; its bytes are held once. So is the node's own block, which is read
 * once, by whichever port is the first to need more of it. */
#ifndef TORUSD_ENGINE_STREAMING_H
#define TORUSD_ENGINE_STREAMING_H

#include "daemon/engine/engine.h"
#include "daemon/schedule/routes/passages.h"

/* Bytes: blocks of the same size are not split into smaller pieces than this. */
#define STREAMING_LEAST_PIECE 256u

/* An engine that accepts frames of the first `window` rounds at once; engine_free() frees it.
 * `passages` is borrowed, and is of an algorithm for allgathers if and only if setup->gather is set;
 * all-port algorithms only. Returns NULL with *e if there is no memory. */
struct engine *streaming_new(const struct engine_setup *setup, const struct passages *passages,
                             struct error *e);

#endif
