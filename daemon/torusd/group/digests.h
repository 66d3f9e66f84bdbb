/* The digest of a block whose bytes pass in pieces, in any order. It is the sum of its pages' digests,
 * calculated while the bytes are in the processor's cache. Pages that no piece has covered completely are added
 * at the end, from the block's memory. */
#pragma once

#include <stdint.h>

struct passing_digest {
    uint64_t sum;
    uint64_t *added; /* a bit for each page that was added; NULL: none was */
};

/* Adds `length` bytes at `piece`, which are at `offset` of a block of `size` bytes. `seed` makes digests of
 * equal blocks at different places differ. */
void digest_pass(struct passing_digest *d, const uint8_t *piece, uint64_t offset, uint64_t length,
                 uint64_t size, uint64_t seed);
/* Returns the digest of the block, which is at `data` now. It does not depend on the pieces. Frees what *d has. */
uint64_t digest_finish(struct passing_digest *d, const uint8_t *data, uint64_t size, uint64_t seed);
/* Frees what *d has, without a digest. */
void digest_drop(struct passing_digest *d);
