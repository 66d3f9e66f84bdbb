/* The digest of a block whose bytes pass in pieces, in any order: the sum of its pages' digests, made
 * while the bytes are in the processor's cache. What remains of pages that no piece has covered whole
 * is made at the end, from the block's memory. */
#ifndef TORUSD_GROUP_DATA_DIGESTS_H
#define TORUSD_GROUP_DATA_DIGESTS_H

#include <stdint.h>

struct passing_digest {
    uint64_t sum;
    uint64_t *added; /* a bit for each page; NULL: none is */
};

/* `length` bytes at `offset` of the block of `size` bytes are at `piece`. `seed`: so that no other
 * block is taken for it. */
void digest_pass(struct passing_digest *d, const uint8_t *piece, uint64_t offset, uint64_t length,
                 uint64_t size, uint64_t seed);

/* The digest of the block, which lies at `data` now; the same in whatever pieces it has passed. Frees
 * what *d has. */
uint64_t digest_finish(struct passing_digest *d, const uint8_t *data, uint64_t size, uint64_t seed);

/* If it is not finished. */
void digest_drop(struct passing_digest *d);

#endif
