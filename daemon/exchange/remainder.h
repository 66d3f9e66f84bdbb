/* What is missing of the blocks of an exchange that begins anew, as blocks of their own: the missing
 * bytes of a block one after the other. For sources that can read, and sinks that can take, any bytes of
 * a block at any time. */
#ifndef TORUSD_EXCHANGE_REMAINDER_H
#define TORUSD_EXCHANGE_REMAINDER_H

#include "daemon/exchange/arrived.h"
#include "daemon/exchange/blocks.h"

/* Blocks of `size` bytes each, of which `there` have arrived, by destination; borrowed, and may grow until
 * the first size() or read(). Takes `whole` over, also on failure: NULL. */
struct source *remainder_source(struct source *whole, const struct arrived *there, uint64_t size);

/* The same of a sink, and what has arrived here, by origin. Bytes that were not missing are refused. */
struct sink *remainder_sink(struct sink *whole, const struct arrived *here, uint64_t size);

#endif
