/* For a retried exchange: presents the missing bytes of each block as a shorter block without gaps. Sources
 * skip bytes that have arrived (source.skips). This is the receiving end, for sinks that accept any bytes of
 * a block at any time. */
#pragma once

#include "daemon/torusd/engine/arrived.h"
#include "daemon/torusd/engine/blocks.h"

/* Makes a sink for the missing bytes of blocks of `size` bytes each (UINT64_MAX: not known). `here` are the
 * bytes that have arrived, by origin; borrowed, and may change until the first write(). write() refuses
 * bytes that are not missing. Takes over `whole`. Returns NULL if there is no memory; then `whole` is not
 * taken over. */
struct sink *remainder_sink(struct sink *whole, const struct arrived *here, uint64_t size);

/* Frees the sink, and gives `whole` back to the caller. */
struct sink *remainder_whole(struct sink *s);
