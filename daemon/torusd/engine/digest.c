#include "daemon/torusd/engine/digest.h"

#include <stdlib.h>
#include <string.h>

#define XXH_STATIC_LINKING_ONLY /* defines the size of the state, which is not allocated */
#include <xxhash.h>
#ifdef TORUS_XXHASH_DISPATCH
#include <xxh_x86dispatch.h> /* the same functions, twice as fast with the processor's vector
                              * instructions */
#endif

uint64_t digest_bytes(const void *bytes, size_t length, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, length, seed);
}

uint64_t digest_extents(const struct extents *bytes, uint32_t length, uint64_t seed)
{
    struct extent_cursor cursor = {0};
    struct extent run = {.data = (const uint8_t *)""};
    uint32_t first = extents_take(bytes, &cursor, length, &run);
    XXH3_state_t state;

    if (first == length)
        return XXH3_64bits_withSeed(run.data, first, seed);
    XXH3_INITSTATE(&state);
    (void)XXH3_64bits_reset_withSeed(&state, seed);
    for (uint32_t n = first; n > 0; n = extents_take(bytes, &cursor, length, &run)) {
        (void)XXH3_64bits_update(&state, run.data, n);
        length -= n;
    }
    return XXH3_64bits_digest(&state);
}

/* --- 128 bits --- */

struct digest_parts {
    XXH3_state_t state;
};

static void write_wide(uint8_t to[DIGEST_WIDE], XXH128_hash_t digest)
{
    XXH128_canonical_t canonical;

    _Static_assert(sizeof canonical == DIGEST_WIDE, "a digest of 128 bits");
    XXH128_canonicalFromHash(&canonical, digest);
    memcpy(to, &canonical, sizeof canonical);
}

void digest_wide(const void *bytes, size_t length, uint64_t seed, uint8_t to[DIGEST_WIDE])
{
    write_wide(to, XXH3_128bits_withSeed(bytes, length, seed));
}

struct digest_parts *digest_parts_new(void)
{
    /* aligned for vector instructions */
    struct digest_parts *d = aligned_alloc(_Alignof(struct digest_parts), sizeof *d);

    if (d != NULL)
        XXH3_INITSTATE(&d->state);
    return d;
}

void digest_parts_free(struct digest_parts *d)
{
    free(d);
}

void digest_parts_begin(struct digest_parts *d, uint64_t seed)
{
    (void)XXH3_128bits_reset_withSeed(&d->state, seed);
}

void digest_parts_add(struct digest_parts *d, const void *bytes, size_t length)
{
    (void)XXH3_128bits_update(&d->state, bytes, length);
}

void digest_parts_end(const struct digest_parts *d, uint8_t to[DIGEST_WIDE])
{
    write_wide(to, XXH3_128bits_digest(&d->state));
}

void digest_write(uint8_t to[DIGEST_SIZE], uint64_t digest)
{
    for (unsigned i = 0; i < DIGEST_SIZE; i++)
        to[i] = (uint8_t)(digest >> 8 * i);
}

uint64_t digest_read(const uint8_t from[DIGEST_SIZE])
{
    uint64_t digest = 0;

    for (unsigned i = DIGEST_SIZE; i-- > 0;)
        digest = digest << 8 | from[i];
    return digest;
}
