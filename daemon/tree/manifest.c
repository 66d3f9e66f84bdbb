#include "daemon/tree/manifest.h"

#include <sodium.h>
#include <string.h>

#include "daemon/tree/manifest_cursor.h"
#include "daemon/tree/manifest_format.h"

static int damaged(const char *what, struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "the manifest is damaged: %s", what);
}

static int refuse_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a manifest");
}

/* Reads head and tail, and checks that they fit the size. */
static int read_frame(struct manifest *m, struct error *e)
{
    uint8_t head[MANIFEST_HEAD], tail[MANIFEST_TAIL];
    uint64_t least = MANIFEST_HEAD + MANIFEST_TAIL;

    if (m->size < least || m->size > INT64_MAX)
        return damaged("its size is wrong", e);
    if (manifest_read_bytes(m, head, sizeof head, 0, e) != 0 ||
        manifest_read_bytes(m, tail, sizeof tail, m->size - MANIFEST_TAIL, e) != 0)
        return -1;
    if (memcmp(head, MANIFEST_MAGIC, 8) != 0 || get_u32(head + 8) != MANIFEST_VERSION ||
        get_u32(head + 12) != MANIFEST_STRIDE)
        return damaged("it has another format: are the versions of torusd the same?", e);
    m->entries = get_u64(tail + 8);
    m->stream = get_u64(tail + 16);
    memcpy(m->digest, tail + 24, MANIFEST_DIGEST);
    if (m->entries > (m->size - least) / RECORD_HEAD ||
        manifest_groups(m->entries) * MANIFEST_INDEX > m->size - least ||
        manifest_index_place(m) != get_u64(tail))
        return damaged("its length does not fit the number of its entries", e);
    return 0;
}

static int check_digest(const struct manifest *m, struct error *e)
{
    crypto_generichash_state state;
    uint8_t bytes[16384], digest[MANIFEST_DIGEST];
    uint64_t end = m->size - MANIFEST_DIGEST;

    (void)crypto_generichash_init(&state, NULL, 0, sizeof digest);
    for (uint64_t at = 0; at < end;) {
        size_t length = end - at < sizeof bytes ? (size_t)(end - at) : sizeof bytes;
        if (manifest_read_bytes(m, bytes, length, at, e) != 0)
            return -1;
        (void)crypto_generichash_update(&state, bytes, length);
        at += length;
    }
    (void)crypto_generichash_final(&state, digest, sizeof digest);
    return memcmp(digest, m->digest, sizeof digest) == 0 ? 0 : damaged("its digest is wrong", e);
}

/* Checks that the index leads to the entry that a cursor reads next. */
static int check_index(const struct manifest *m, const struct manifest_cursor *c, uint64_t group,
                       struct error *e)
{
    uint8_t item[MANIFEST_INDEX];

    if (manifest_read_bytes(m, item, sizeof item, manifest_index_place(m) + group * sizeof item,
                            e) != 0)
        return -1;
    if (get_u64(item) != manifest_cursor_place(c) || get_u64(item + 8) != manifest_cursor_begin(c))
        return damaged("its index is wrong", e);
    return 0;
}

/* Checks that a hard link leads to a file. The part of the index that this needs has been checked before. */
static int check_hardlink(struct manifest_cursor *earlier, const struct entry *link,
                          struct error *e)
{
    struct entry entry;

    if (manifest_seek_index(earlier, link->linked, e) != 0 || manifest_next(earlier, &entry, e) < 0)
        return -1;
    if (entry.kind != ENTRY_FILE || strcmp(entry.path, link->link) != 0)
        return error_set(e, ERROR_PROTOCOL,
                         "the manifest is damaged at entry %llu: it is a hard link to an entry "
                         "that is no file, or has another path",
                         (unsigned long long)link->index);
    return 0;
}

static void count(struct manifest *m, enum entry_kind kind)
{
    m->files += kind == ENTRY_FILE;
    m->folders += kind == ENTRY_FOLDER;
    m->symlinks += kind == ENTRY_SYMLINK;
    m->hardlinks += kind == ENTRY_HARDLINK;
}

static int check_entries(struct manifest *m, struct manifest_cursor *c,
                         struct manifest_cursor *earlier, struct error *e)
{
    struct entry entry;

    for (uint64_t i = 0; i < m->entries; i++) {
        if (i % MANIFEST_STRIDE == 0 && check_index(m, c, i / MANIFEST_STRIDE, e) != 0)
            return -1;
        if (manifest_next(c, &entry, e) < 0 ||
            (entry.kind == ENTRY_HARDLINK && check_hardlink(earlier, &entry, e) != 0))
            return -1;
        count(m, entry.kind);
    }
    if (manifest_cursor_place(c) != manifest_index_place(m))
        return damaged("there are bytes between its entries and its index", e);
    if (manifest_cursor_begin(c) != m->stream)
        return damaged("the size of its stream is wrong", e);
    return 0;
}

int manifest_open(struct manifest *m, int file, uint64_t size, struct error *e)
{
    *m = (struct manifest){.file = file, .size = size};
    if (read_frame(m, e) != 0 || check_digest(m, e) != 0)
        return -1;
    struct manifest_cursor *c = manifest_cursor_new(m), *earlier = manifest_cursor_new(m);
    int result = c != NULL && earlier != NULL ? check_entries(m, c, earlier, e) : refuse_memory(e);
    manifest_cursor_free(c);
    manifest_cursor_free(earlier);
    return result;
}
