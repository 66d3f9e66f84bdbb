#include "daemon/torusd/tree/digests.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/manifest_format.h"

/* --- wanted --- */

#define DIGESTS_MAGIC "TORUSDIG" /* 8 bytes */
#define DIGESTS_VERSION 1u
#define DIGESTS_VERSION_FAST 2u
#define DIGESTS_HEAD 16u
#define DIGESTS_HEAD_FAST (DIGESTS_HEAD + 8u)
#define DIGESTS_CHUNK (4u + FILE_DIGEST)
#define DIGESTS_NO_FILE UINT64_MAX
#define DIGESTS_LEAST (DIGESTS_HEAD + 8u + FILE_DIGEST) /* of a document */

/* Writes a number in groups of 7 bits. Returns how many bytes that takes. */
static size_t put_groups(uint8_t bytes[10], uint64_t value)
{
    size_t length = 0;

    do {
        bytes[length++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value > 0);
    return length;
}

static bool take_groups(struct wanted_numbers *n, uint64_t *value)
{
    uint8_t byte = 128;

    *value = 0;
    for (unsigned shift = 0; byte >= 128; shift += 7) {
        if (n->left == 0 || shift > 56)
            return false;
        byte = *n->bytes++;
        n->left--;
        *value |= (uint64_t)(byte & 127) << shift;
    }
    return true;
}

bool wanted_add(struct wanted *w, uint64_t index, uint64_t size)
{
    uint8_t bytes[20];

    if (index < w->next)
        return false;
    size_t length = put_groups(bytes, index - w->next);
    if (w->sizes)
        length += put_groups(bytes + length, size);
    if (length > sizeof w->bytes - w->length)
        return false;
    for (size_t i = 0; i < length; i++)
        w->bytes[w->length++] = bytes[i];
    w->next = index + 1;
    return true;
}

bool wanted_next(struct wanted_numbers *n, uint64_t *index, uint64_t *size)
{
    uint64_t value;

    *size = 0;
    if (!take_groups(n, &value) || value >= UINT64_MAX - n->next ||
        (n->sizes && !take_groups(n, size)))
        return false;
    *index = n->next + value;
    n->next = *index + 1;
    return true;
}

/* --- writing the document --- */

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

/* --- reading the document --- */

#define WINDOW 65536u

struct digests_cursor {
    int file;
    struct chunk_digests how;
    uint64_t end;   /* place of the digest of the document */
    uint64_t place; /* of what is read next */
    uint64_t window_place;
    size_t window_used;
    bool in_file, ended;
    uint8_t window[WINDOW];
};

static int damaged(const char *what, struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "the digests of files are damaged: %s", what);
}

static int read_bytes(int file, void *bytes, size_t length, uint64_t offset, struct error *e)
{
    if (file_read(file, bytes, length, offset) == 0)
        return 0;
    if (errno == 0)
        return damaged("they are too short", e);
    return error_set(e, ERROR_IO, "the digests of files cannot be read: %s", strerror(errno));
}

/* Reads the head of a document of this size. Returns 0 with *how, and *length of the head, or -1 with *e. */
static int read_head(int file, uint64_t size, struct chunk_digests *how, size_t *length,
                     struct error *e)
{
    uint8_t head[DIGESTS_HEAD_FAST];

    if (size < DIGESTS_LEAST || size > INT64_MAX)
        return damaged("their size is wrong", e);
    if (read_bytes(file, head, sizeof head, 0, e) != 0) /* there are as many in any document */
        return -1;
    const uint32_t version = get_u32(head + 8);
    *how = (struct chunk_digests){.fast = version == DIGESTS_VERSION_FAST};
    *length = how->fast ? DIGESTS_HEAD_FAST : DIGESTS_HEAD;
    if (how->fast)
        how->seed = get_u64(head + DIGESTS_HEAD);
    if (memcmp(head, DIGESTS_MAGIC, 8) != 0 || (version != DIGESTS_VERSION && !how->fast) ||
        get_u32(head + 12) != 0)
        return damaged("they have another format: are the versions of torusd the same?", e);
    return size >= *length + 8u + FILE_DIGEST ? 0 : damaged("their size is wrong", e);
}

struct digests_cursor *digests_cursor_new(int file, uint64_t size)
{
    struct digests_cursor *c = malloc(sizeof *c);
    struct error e;
    size_t head = 0;

    if (c == NULL)
        return NULL;
    c->file = file;
    /* a document that cannot be read any more, although it was checked, ends too early */
    c->end = read_head(file, size, &c->how, &head, &e) == 0 ? size - FILE_DIGEST : 0;
    c->place = head;
    c->window_place = 0;
    c->window_used = 0;
    c->in_file = false;
    c->ended = false;
    return c;
}

void digests_cursor_free(struct digests_cursor *c)
{
    free(c);
}

struct chunk_digests digests_how(const struct digests_cursor *c)
{
    return c->how;
}

/* Takes the next bytes: NULL with *e if they are not there. */
static const uint8_t *take(struct digests_cursor *c, size_t length, struct error *e)
{
    uint64_t left = c->end > c->place ? c->end - c->place : 0;

    if (left < length) {
        (void)damaged("they end too early", e);
        return NULL;
    }
    if (c->place + length > c->window_place + c->window_used || c->place < c->window_place) {
        size_t most = left < WINDOW ? (size_t)left : WINDOW;
        c->window_used = 0;
        if (read_bytes(c->file, c->window, most, c->place, e) != 0)
            return NULL;
        c->window_place = c->place;
        c->window_used = most;
    }
    const uint8_t *at = c->window + (c->place - c->window_place);
    c->place += length;
    return at;
}

int digests_next_chunk(struct digests_cursor *c, struct chunk *chunk, struct error *e)
{
    if (!c->in_file)
        return 0;
    const uint8_t *at = take(c, 4, e);
    if (at == NULL)
        return -1;
    chunk->length = get_u32(at);
    if (chunk->length == 0) {
        c->in_file = false;
        return 0;
    }
    if (chunk->length > CHUNK_MOST)
        return damaged("a chunk is too long", e);
    at = take(c, FILE_DIGEST, e);
    if (at == NULL)
        return -1;
    memcpy(chunk->digest, at, FILE_DIGEST);
    return 1;
}

int digests_next_file(struct digests_cursor *c, uint64_t *index, struct error *e)
{
    struct chunk chunk;
    int result;

    while ((result = digests_next_chunk(c, &chunk, e)) == 1)
        ;
    if (result < 0 || c->ended)
        return result;
    const uint8_t *at = take(c, 8, e);
    if (at == NULL)
        return -1;
    *index = get_u64(at);
    c->ended = *index == DIGESTS_NO_FILE;
    c->in_file = !c->ended;
    return c->in_file ? 1 : 0;
}

/* --- the check --- */

static int check_frame(int file, uint64_t size, struct error *e)
{
    uint8_t bytes[16384], digest[FILE_DIGEST];
    crypto_generichash_state state;
    struct chunk_digests how;
    size_t head;

    if (read_head(file, size, &how, &head, e) != 0)
        return -1;
    (void)crypto_generichash_init(&state, NULL, 0, sizeof digest);
    for (uint64_t at = 0, end = size - FILE_DIGEST; at < end;) {
        size_t length = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        if (read_bytes(file, bytes, length, at, e) != 0)
            return -1;
        (void)crypto_generichash_update(&state, bytes, length);
        at += length;
    }
    (void)crypto_generichash_final(&state, digest, sizeof digest);
    if (read_bytes(file, bytes, sizeof digest, size - FILE_DIGEST, e) != 0)
        return -1;
    return memcmp(digest, bytes, sizeof digest) == 0 ? 0 : damaged("their digest is wrong", e);
}

/* Checks the chunks of one file. */
static int check_file(struct digests_cursor *c, struct manifest_cursor *entries, uint64_t index,
                      uint32_t shorts, struct error *e)
{
    struct entry entry;
    struct chunk chunk;
    uint64_t bytes = 0;
    int result;

    if (manifest_seek_index(entries, index, e) != 0)
        return -1;
    result = manifest_next(entries, &entry, e);
    if (result < 0)
        return -1;
    if (result == 0 || entry.kind != ENTRY_FILE)
        return damaged("they are of an entry that is not a file", e);
    while ((result = digests_next_chunk(c, &chunk, e)) == 1) {
        if (chunk.length > entry.bytes - bytes)
            return damaged("the chunks of a file are too long", e);
        bytes += chunk.length;
        if (chunk.length < CHUNK_LEAST && bytes < entry.bytes && shorts-- == 0)
            return damaged("a chunk is too short", e);
    }
    if (result == 0 && bytes != entry.bytes)
        return damaged("chunks of a file are missing", e);
    return result;
}

static int check_files(struct digests_cursor *c, struct manifest_cursor *entries, uint32_t shorts,
                       struct error *e)
{
    uint64_t index, next = 0;
    int result;

    while ((result = digests_next_file(c, &index, e)) == 1) {
        if (index < next)
            return damaged("they are not in order", e);
        next = index + 1;
        if (check_file(c, entries, index, shorts, e) != 0)
            return -1;
    }
    if (result == 0 && c->place != c->end)
        return damaged("there are bytes behind the last file", e);
    return result;
}

int digests_check(int file, uint64_t size, const struct manifest *manifest, uint32_t shorts,
                  struct error *e)
{
    if (check_frame(file, size, e) != 0)
        return -1;
    struct digests_cursor *c = digests_cursor_new(file, size);
    struct manifest_cursor *entries = manifest_cursor_new(manifest);
    int result = c != NULL && entries != NULL
                     ? check_files(c, entries, shorts, e)
                     : error_set(e, ERROR_MEMORY, "out of memory for digests of files");
    digests_cursor_free(c);
    manifest_cursor_free(entries);
    return result;
}
