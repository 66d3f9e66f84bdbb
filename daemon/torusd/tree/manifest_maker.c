#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/manifest_format.h"

#define BUFFER_LEAST 65536u

struct manifest_maker {
    int file;
    struct record_state last;
    crypto_generichash_state digest;
    uint8_t *buffer; /* what is not written yet */
    size_t used, room;
    uint64_t written, entries, stream;
    uint8_t *index;
    uint64_t index_room; /* groups */
    uint64_t *link;      /* the numbers that hard links lead to */
    size_t links, links_room;
};

static int refuse_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a manifest");
}

struct manifest_maker *manifest_maker_new(int file, struct error *e)
{
    struct manifest_maker *m = calloc(1, sizeof *m);

    if (m != NULL)
        m->buffer = malloc(BUFFER_LEAST);
    if (m == NULL || m->buffer == NULL) {
        free(m);
        (void)refuse_memory(e);
        return NULL;
    }
    m->file = file;
    m->room = BUFFER_LEAST;
    (void)crypto_generichash_init(&m->digest, NULL, 0, MANIFEST_DIGEST);
    memcpy(m->buffer, MANIFEST_MAGIC, 8);
    (void)put_u32(put_u32(m->buffer + 8, MANIFEST_VERSION), MANIFEST_STRIDE);
    m->used = MANIFEST_HEAD;
    return m;
}

void manifest_maker_free(struct manifest_maker *m)
{
    if (m == NULL)
        return;
    record_state_free(&m->last);
    free(m->buffer);
    free(m->index);
    free(m->link);
    free(m);
}

static int put_out(struct manifest_maker *m, const uint8_t *bytes, size_t length, struct error *e)
{
    if (file_write(m->file, bytes, length, m->written) != 0)
        return error_set(e, ERROR_IO, "a manifest cannot be written: %s", strerror(errno));
    (void)crypto_generichash_update(&m->digest, bytes, length);
    m->written += length;
    return 0;
}

static int flush(struct manifest_maker *m, struct error *e)
{
    int result = put_out(m, m->buffer, m->used, e);

    m->used = 0;
    return result;
}

/* Makes room for a record, and for the place of it in the index. */
static int make_room(struct manifest_maker *m, size_t size, struct error *e)
{
    uint64_t groups = m->entries / MANIFEST_STRIDE + 1;

    if (m->used + size > m->room && flush(m, e) != 0)
        return -1;
    if (size > m->room) {
        uint8_t *buffer = realloc(m->buffer, size);
        if (buffer == NULL)
            return refuse_memory(e);
        m->buffer = buffer;
        m->room = size;
    }
    if (groups > m->index_room) {
        uint64_t room = 2 * groups + 16;
        uint8_t *index = reallocarray(m->index, room, MANIFEST_INDEX);
        if (index == NULL)
            return refuse_memory(e);
        m->index = index;
        m->index_room = room;
    }
    return 0;
}

static int add_link(struct manifest_maker *m, uint64_t linked, struct error *e)
{
    if (GROW(m->link, m->links, m->links_room) != 0)
        return refuse_memory(e);
    m->link[m->links++] = linked;
    return 0;
}

static size_t shared_bytes(const struct manifest_maker *m, const struct entry *entry)
{
    const char *last = m->last.path[m->last.now];
    size_t shared = 0;

    if (m->entries % MANIFEST_STRIDE == 0)
        return 0;
    while (shared < m->last.path_length && shared < entry->path_length &&
           last[shared] == entry->path[shared])
        shared++;
    return shared;
}

int manifest_maker_add(struct manifest_maker *m, struct entry *entry, struct error *e)
{
    entry->index = m->entries;
    const char *wrong = entry_check_path(&m->last, entry->index, entry->path, entry->path_length);
    if (wrong == NULL)
        wrong = entry_check(entry);
    if (wrong == NULL && entry->bytes > INT64_MAX - m->stream)
        wrong = "all files together are too large";
    if (wrong != NULL)
        return error_set(e, ERROR_REFUSED, "%s cannot be in a manifest: %s",
                         entry->path_length > 0 ? entry->path : "the tree", wrong);
    size_t shared = shared_bytes(m, entry), size = record_size(entry, shared);
    if (make_room(m, size, e) != 0 ||
        (entry->kind == ENTRY_HARDLINK && add_link(m, entry->linked, e) != 0))
        return -1;
    if (m->entries % MANIFEST_STRIDE == 0)
        (void)put_u64(
            put_u64(m->index + m->entries / MANIFEST_STRIDE * MANIFEST_INDEX, m->written + m->used),
            m->stream);
    record_write(entry, shared, m->buffer + m->used);
    m->used += size;
    m->entries++;
    entry->begin = entry->kind == ENTRY_FILE ? m->stream : 0;
    m->stream += entry->bytes;
    record_state_advance(&m->last, entry);
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int put_links(struct manifest_maker *m, struct error *e)
{
    if (m->links > 0)
        qsort(m->link, m->links, sizeof *m->link, compare);
    for (uint64_t i = 0; i < m->links; i++)
        (void)put_u64((uint8_t *)&m->link[i], m->link[i]);
    return put_out(m, (const uint8_t *)m->link, m->links * MANIFEST_LINK, e);
}

int manifest_maker_finish(struct manifest_maker *m, uint64_t *size, uint64_t *stream,
                          struct error *e)
{
    uint8_t tail[MANIFEST_TAIL];
    size_t index = (size_t)manifest_groups(m->entries) * MANIFEST_INDEX;

    if (flush(m, e) != 0 || put_links(m, e) != 0)
        return -1;
    (void)put_u64(put_u64(put_u64(tail, m->entries), m->links), m->stream);
    if (put_out(m, m->index, index, e) != 0 ||
        put_out(m, tail, MANIFEST_TAIL - MANIFEST_DIGEST, e) != 0)
        return -1;
    (void)crypto_generichash_final(&m->digest, tail, MANIFEST_DIGEST);
    if (file_write(m->file, tail, MANIFEST_DIGEST, m->written) != 0)
        return error_set(e, ERROR_IO, "a manifest cannot be written: %s", strerror(errno));
    *size = m->written + MANIFEST_DIGEST;
    *stream = m->stream;
    return 0;
}
