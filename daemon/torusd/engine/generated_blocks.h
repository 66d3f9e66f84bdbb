/* Generated blocks: every byte depends on the seed, source, destination and its position, and is checked
 * where it arrives. */
#pragma once

#include "daemon/torusd/engine/blocks.h"

/* `seed` must be the same on all nodes. Return NULL if there is no memory. */
struct source *pattern_source(uint64_t seed, uint32_t rank, uint64_t block_bytes,
                              struct slab_pool *pool);
/* In an allgather (`gather`) every node gets the block that the source has for itself. */
struct sink *pattern_sink(uint64_t seed, uint32_t rank, bool gather);

/* Writes `length` bytes of the block from `source` for `destination`, from `offset` on. */
void pattern_fill(uint8_t *out, uint32_t length, uint64_t seed, uint32_t source,
                  uint32_t destination, uint64_t offset);

/* Returns the position of the first byte that differs, or `length`. */
uint32_t pattern_compare(const uint8_t *data, uint32_t length, uint64_t seed, uint32_t source,
                         uint32_t destination, uint64_t offset);
