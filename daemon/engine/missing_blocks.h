/* What is missing of the blocks of an exchange that begins anew, as blocks of their own: the missing
 * bytes of a block one after the other. Sources leave out what has arrived (source.skips); this is the other
 * end of it, for sinks that can take any bytes of a block at any time. */
#ifndef TORUSD_ENGINE_MISSING_BLOCKS_H
#define TORUSD_ENGINE_MISSING_BLOCKS_H

#include "daemon/engine/arrived.h"
#include "daemon/engine/blocks.h"

/* Blocks of `size` bytes each (UINT64_MAX: not known) of which `here` have arrived, by origin; borrowed, and may
 * change until the first write(). Bytes that were not missing are refused. Takes `whole` over; NULL: no memory,
 * and not taken. */
struct sink *remainder_sink(struct sink *whole, const struct arrived *here, uint64_t size);

/* What it was made of, which is the caller's again; it is freed. */
struct sink *remainder_whole(struct sink *s);

#endif
