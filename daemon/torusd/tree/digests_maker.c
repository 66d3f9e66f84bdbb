#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/tree/digests_format.h"
#include "daemon/torusd/tree/file_bytes.h"
#include "daemon/torusd/tree/manifest_format.h"

#define BUFFER 65536u

struct digests_maker {
    crypto_generichash_state digest;
    int file;
    uint64_t written;
    bool in_file;
    size_t used;
    uint8_t buffer[BUFFER];
};

struct digests_maker *digests_maker_new(int file, const struct chunk_digests *how, struct error *e)
{
    struct digests_maker *m = aligned_alloc(_Alignof(struct digests_maker), sizeof *m);

    if (m == NULL) {
        (void)error_set(e, ERROR_MEMORY, "out of memory for digests");
        return NULL;
    }
    (void)crypto_generichash_init(&m->digest, NULL, 0, FILE_DIGEST);
    m->file = file;
    m->written = 0;
    m->in_file = false;
    memcpy(m->buffer, DIGESTS_MAGIC, 8);
    (void)put_u32(put_u32(m->buffer + 8, how->fast ? DIGESTS_VERSION_FAST : DIGESTS_VERSION), 0);
    m->used = DIGESTS_HEAD;
    if (how->fast) {
        (void)put_u64(m->buffer + m->used, how->seed);
        m->used = DIGESTS_HEAD_FAST;
    }
    return m;
}

void digests_maker_free(struct digests_maker *m)
{
    free(m);
}

static int put_out(struct digests_maker *m, struct error *e)
{
    if (file_write(m->file, m->buffer, m->used, m->written) != 0)
        return error_set(e, ERROR_IO, "digests of files cannot be written: %s", strerror(errno));
    (void)crypto_generichash_update(&m->digest, m->buffer, m->used);
    m->written += m->used;
    m->used = 0;
    return 0;
}

static int make_room(struct digests_maker *m, size_t length, struct error *e)
{
    return m->used + length > BUFFER ? put_out(m, e) : 0;
}

static int end_file(struct digests_maker *m, struct error *e)
{
    if (!m->in_file)
        return 0;
    if (make_room(m, 4, e) != 0)
        return -1;
    (void)put_u32(m->buffer + m->used, 0);
    m->used += 4;
    m->in_file = false;
    return 0;
}

int digests_maker_file(struct digests_maker *m, uint64_t index, struct error *e)
{
    if (end_file(m, e) != 0 || make_room(m, 8, e) != 0)
        return -1;
    (void)put_u64(m->buffer + m->used, index);
    m->used += 8;
    m->in_file = true;
    return 0;
}

int digests_maker_chunk(struct digests_maker *m, const struct chunk *chunk, struct error *e)
{
    if (make_room(m, DIGESTS_CHUNK, e) != 0)
        return -1;
    memcpy(put_u32(m->buffer + m->used, chunk->length), chunk->digest, FILE_DIGEST);
    m->used += DIGESTS_CHUNK;
    return 0;
}

int digests_maker_finish(struct digests_maker *m, uint64_t *size, struct error *e)
{
    uint8_t digest[FILE_DIGEST];

    if (end_file(m, e) != 0 || make_room(m, 8, e) != 0)
        return -1;
    (void)put_u64(m->buffer + m->used, DIGESTS_NO_FILE);
    m->used += 8;
    if (put_out(m, e) != 0)
        return -1;
    (void)crypto_generichash_final(&m->digest, digest, sizeof digest);
    if (file_write(m->file, digest, sizeof digest, m->written) != 0)
        return error_set(e, ERROR_IO, "digests of files cannot be written: %s", strerror(errno));
    *size = m->written + sizeof digest;
    return 0;
}
