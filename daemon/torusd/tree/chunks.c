#include "daemon/torusd/tree/chunks.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

#include "daemon/torusd/engine/digest.h"

#define BLOCK (256u * 1024)

/* A chunk ends behind a byte if the highest bits of the hash of the last 64 bytes are 0. More bits are asked for in chunks
 * that are shorter than the mean, so that lengths vary less. */
#define WINDOW 64u
#define BITS_SHORT 17u
#define BITS_LONG 15u

struct cutter {
    struct chunk_digests how;
    struct digest_parts *fast; /* if how.fast; otherwise: */
    crypto_generichash_state digest;
    uint64_t hash;
    uint32_t length;
    uint64_t gear[256]; /* a random number for each byte */
};

/* The numbers are those of the generator SplitMix64 from 0 on. */
static void fill_gear(uint64_t gear[256])
{
    uint64_t state = 0;

    for (unsigned i = 0; i < 256; i++) {
        uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        gear[i] = z ^ (z >> 31);
    }
}

void chunk_digest(const struct chunk_digests *how, const uint8_t *bytes, size_t length,
                  uint8_t digest[FILE_DIGEST])
{
    _Static_assert(DIGEST_WIDE == FILE_DIGEST, "digests of both kinds have the same length");
    if (how->fast)
        digest_wide(bytes, length, how->seed, digest);
    else
        (void)crypto_generichash(digest, FILE_DIGEST, bytes, length, NULL, 0);
}

static void begin_chunk(struct cutter *c)
{
    if (c->how.fast)
        digest_parts_begin(c->fast, c->how.seed);
    else
        (void)crypto_generichash_init(&c->digest, NULL, 0, FILE_DIGEST);
    c->hash = 0;
    c->length = 0;
}

struct cutter *cutter_new(const struct chunk_digests *how)
{
    /* aligned for the state of the digest */
    struct cutter *c = aligned_alloc(_Alignof(struct cutter), sizeof *c);

    if (c == NULL)
        return NULL;
    c->how = *how;
    c->fast = how->fast ? digest_parts_new() : NULL;
    if (how->fast && c->fast == NULL) {
        free(c);
        return NULL;
    }
    fill_gear(c->gear);
    begin_chunk(c);
    return c;
}

void cutter_free(struct cutter *c)
{
    if (c != NULL)
        digest_parts_free(c->fast);
    free(c);
}

bool cutter_end(struct cutter *c, struct chunk *chunk)
{
    if (c->length == 0)
        return false;
    chunk->length = c->length;
    if (c->how.fast)
        digest_parts_end(c->fast, chunk->digest);
    else
        (void)crypto_generichash_final(&c->digest, chunk->digest, FILE_DIGEST);
    begin_chunk(c);
    return true;
}

/* Hashes bytes up to a length of the chunk. Returns the number of bytes up to the end of the chunk, or all of them. */
static size_t find_end(struct cutter *c, const uint8_t *bytes, size_t length, uint32_t limit,
                       unsigned bits, bool *ended)
{
    uint64_t hash = c->hash;
    size_t most = limit - c->length < length ? limit - c->length : length, i = 0;

    while (i < most && !*ended) {
        hash = (hash << 1) + c->gear[bytes[i++]];
        *ended = hash >> (64 - bits) == 0;
    }
    c->hash = hash;
    c->length += (uint32_t)i;
    return i;
}

/* Bytes that cannot end a chunk. Those before the window do not matter. */
static size_t pass_least(struct cutter *c, const uint8_t *bytes, size_t length)
{
    size_t taken = 0;

    if (c->length < CHUNK_LEAST - WINDOW) {
        size_t left = CHUNK_LEAST - WINDOW - c->length;
        taken = left < length ? left : length;
        c->length += (uint32_t)taken;
    }
    while (taken < length && c->length < CHUNK_LEAST) {
        c->hash = (c->hash << 1) + c->gear[bytes[taken++]];
        c->length++;
    }
    return taken;
}

size_t cutter_feed(struct cutter *c, const uint8_t *bytes, size_t length, struct chunk *chunk,
                   bool *ended)
{
    size_t taken = pass_least(c, bytes, length);

    *ended = false;
    if (c->length < CHUNK_MEAN)
        taken += find_end(c, bytes + taken, length - taken, CHUNK_MEAN, BITS_SHORT, ended);
    if (!*ended)
        taken += find_end(c, bytes + taken, length - taken, CHUNK_MOST, BITS_LONG, ended);
    *ended = *ended || c->length == CHUNK_MOST;
    if (c->how.fast)
        digest_parts_add(c->fast, bytes, taken);
    else
        (void)crypto_generichash_update(&c->digest, bytes, taken);
    if (*ended)
        (void)cutter_end(c, chunk);
    return taken;
}

/* --- files --- */

struct cutting {
    struct cutter *cutter;
    uint64_t place; /* where the chunk begins */
    int (*found)(void *context, uint64_t place, const struct chunk *chunk);
    void *context;
};

static int pass_on(struct cutting *k, const struct chunk *chunk)
{
    uint64_t place = k->place;

    k->place += chunk->length;
    return k->found(k->context, place, chunk);
}

static int cut_block(struct cutting *k, const uint8_t *bytes, size_t length)
{
    struct chunk chunk;
    bool ended;

    for (size_t done = 0; done < length;) {
        done += cutter_feed(k->cutter, bytes + done, length - done, &chunk, &ended);
        if (ended && pass_on(k, &chunk) != 0)
            return -1;
    }
    return 0;
}

static int cut_range(struct cutting *k, int file, struct file_data *d, uint64_t end, uint8_t *block,
                     struct tree_progress *progress)
{
    struct chunk chunk;

    for (uint64_t at = k->place; at < end;) {
        size_t length = end - at < BLOCK ? (size_t)(end - at) : BLOCK;
        if (progress != NULL && atomic_load(&progress->stop)) {
            errno = ECANCELED;
            return -1;
        }
        if (file_data_read(file, d, at, block, length) != 0 || cut_block(k, block, length) != 0)
            return -1;
        if (progress != NULL)
            (void)atomic_fetch_add(&progress->bytes, length);
        at += length;
    }
    return cutter_end(k->cutter, &chunk) ? pass_on(k, &chunk) : 0;
}

int chunks_of_file(int file, struct file_data *d, const struct chunk_digests *how,
                   struct tree_progress *progress,
                   int (*found)(void *context, uint64_t place, const struct chunk *chunk),
                   void *context)
{
    return chunks_of_range(file, d, how, 0, d->bytes, progress, found, context);
}

int chunks_of_range(int file, struct file_data *d, const struct chunk_digests *how, uint64_t begin,
                    uint64_t end, struct tree_progress *progress,
                    int (*found)(void *context, uint64_t place, const struct chunk *chunk),
                    void *context)
{
    struct cutting k = {
        .cutter = cutter_new(how), .place = begin, .found = found, .context = context};
    uint8_t *block = malloc(BLOCK);
    int result =
        k.cutter != NULL && block != NULL ? cut_range(&k, file, d, end, block, progress) : -1;
    int error = errno;

    cutter_free(k.cutter);
    free(block);
    errno = error;
    return result;
}
