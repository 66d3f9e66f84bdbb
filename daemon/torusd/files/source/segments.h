/* How the blocks in files are cut: round_bytes a round, in segments of run_bytes each (blocks.h). */
#pragma once

#include "daemon/torusd/engine/blocks.h"

struct segments {
    uint32_t count;
    uint64_t round_bytes, run_bytes;
};

/* Returns the segments of rounds of `round_bytes` bytes; a `count` of 0 means 1. */
static inline struct segments segments_of(uint64_t round_bytes, uint32_t count)
{
    return (struct segments){count > 1 ? count : 1, round_bytes, run_bytes(round_bytes, count)};
}

/* Returns the segments of a round that has only `bytes` bytes and is split evenly. */
static inline struct segments segments_of_rest(const struct segments *s, uint64_t bytes)
{
    return bytes < s->round_bytes
               ? (struct segments){s->count, s->round_bytes, run_bytes(bytes, s->count)}
               : *s;
}

/* Returns the segment of a byte of a block. */
static inline uint32_t segment_at(const struct segments *s, uint64_t offset)
{
    return s->count == 1 ? 0 : (uint32_t)(offset % s->round_bytes / s->run_bytes);
}
