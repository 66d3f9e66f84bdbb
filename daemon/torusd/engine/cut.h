/* How blocks are cut into pieces. Pure arithmetic: no state, no allocation.
 *
 * Round k moves round_bytes bytes of every block from k * round_bytes on, or the rest of the block if that is
 * shorter. An algorithm with several segments splits that range into as many pieces, which begin `stride`
 * bytes apart; only the last ones may be shorter, or empty:
 *
 *     block   |----------- round 0 -----------|----------- round 1 -----------|-- round 2 --|
 *     pieces  | segment 0 | segment 1 | seg 2 | segment 0 | segment 1 | seg 2 | 0 | 1 | 2   |
 *
 * If all blocks have the same size, the last round is split evenly, too. If sizes differ, the stride is the
 * same for all blocks and rounds, because a node that receives a piece does not know how long the whole block
 * is. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cut {
    bool uniform;         /* all blocks have block_bytes */
    uint64_t block_bytes; /* if uniform */
    uint32_t round_bytes; /* most bytes of one block in one round, at least 1 */
    uint32_t segments;    /* at least 1 */
    uint32_t least;       /* bytes: uniform blocks are not split into smaller pieces; or 0 */
};

/* One round. */
struct cut_round {
    uint64_t begin; /* where the round begins in each block */
    uint32_t bytes; /* most bytes of one block */
    uint32_t stride;
};

/* Returns how the round with this number is cut. */
struct cut_round cut_round(const struct cut *cut, uint64_t round);

/* Returns the length in bytes of the longest piece of any round, if no block is larger than `block_bytes`,
 * or sizes differ. */
uint32_t cut_longest(const struct cut *cut);

/* Returns how many bytes of a block of `size` bytes are in the round, all segments together. */
static inline uint32_t cut_whole(const struct cut_round *r, uint64_t size)
{
    if (size <= r->begin)
        return 0;
    return size - r->begin < r->bytes ? (uint32_t)(size - r->begin) : r->bytes;
}

/* Returns where a piece begins in its block. */
static inline uint64_t cut_begin(const struct cut_round *r, uint32_t segment)
{
    return r->begin + (uint64_t)segment * r->stride;
}

/* Returns how many bytes a piece has, if its block has `size` bytes. */
static inline uint32_t cut_length(const struct cut_round *r, uint64_t size, uint32_t segment)
{
    uint32_t whole = cut_whole(r, size);
    uint64_t before = (uint64_t)segment * r->stride;

    if (whole <= before)
        return 0;
    return whole - (uint32_t)before < r->stride ? whole - (uint32_t)before : r->stride;
}
