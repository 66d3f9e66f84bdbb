/* Streaming execution: no step waits. A piece (one segment of one block, of one round) leaves a
 * node as soon as a part of it is there; a port sends the pieces of the oldest round first, and of
 * those the one with the farthest way to go, a frame's worth at a time. What is ready for a port
 * leaves as one frame, which names its pieces by their places in the order that both ends of the
 * channel know (schedule/passages.h).
 *
 * Blocks that pass through stay in the slabs they were read into. */
#ifndef TORUSD_EXCHANGE_STREAMING_H
#define TORUSD_EXCHANGE_STREAMING_H

#include "daemon/exchange/engine.h"
#include "daemon/schedule/passages.h"

/* Pieces are not made smaller than that by splitting blocks of the same size. */
#define STREAMING_LEAST_PIECE 256u

/* Ready to take in frames of the first rounds. `passages` is borrowed. Exchanges by all-port
 * algorithms only. Returns NULL with *e if there is no memory. */
struct engine *streaming_new(const struct engine_setup *setup, const struct passages *passages,
                             struct error *e);

#endif
