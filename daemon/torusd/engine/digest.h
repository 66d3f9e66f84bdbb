/* Digests of bytes on their way between two nodes, and of pieces of files: XXH3, 64 or 128 bits. It is not a
 * cryptographic hash: whoever knows the seed may be able to make different bytes that have the same digest. */
#pragma once

#include "daemon/lib/base/slab.h"

#define DIGEST_SIZE 8u /* bytes of a digest in a frame */

/* The digest of `length` bytes. */
uint64_t digest_bytes(const void *bytes, size_t length, uint64_t seed);

/* The digest of the first `length` bytes, which does not depend on how they are divided into runs. */
uint64_t digest_extents(const struct extents *bytes, uint32_t length, uint64_t seed);

#define DIGEST_WIDE 16u /* bytes of a digest of 128 bits */

/* The digest of 128 bits. */
void digest_wide(const void *bytes, size_t length, uint64_t seed, uint8_t to[DIGEST_WIDE]);

/* The same for bytes that come in parts: begin, add, end; then begin again. */
struct digest_parts;
struct digest_parts *digest_parts_new(void); /* NULL: no memory */
void digest_parts_free(struct digest_parts *d);
void digest_parts_begin(struct digest_parts *d, uint64_t seed);
void digest_parts_add(struct digest_parts *d, const void *bytes, size_t length);
void digest_parts_end(const struct digest_parts *d, uint8_t to[DIGEST_WIDE]);

/* A bijection that makes similar numbers dissimilar. */
static inline uint64_t digest_mix(uint64_t x)
{
    x ^= x >> 31;
    x *= UINT64_C(0x7fb5d329728ea185);
    x ^= x >> 27;
    x *= UINT64_C(0x81dadef4bc2dd44d);
    return x ^ x >> 33;
}

/* Digests in frames are little-endian. */
void digest_write(uint8_t to[DIGEST_SIZE], uint64_t digest);
uint64_t digest_read(const uint8_t from[DIGEST_SIZE]);
