#include "daemon/engine/digest.h"

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
