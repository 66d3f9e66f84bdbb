#include "daemon/torusd/tree/manifest.h"

#include <sodium.h>
#include <string.h>

#include "daemon/torusd/tree/manifest_cursor.h"
#include "daemon/torusd/tree/manifest_format.h"

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
    m->entries = get_u64(tail);
    m->hardlinks = get_u64(tail + 8);
    m->stream = get_u64(tail + 16);
    memcpy(m->digest, tail + 24, MANIFEST_DIGEST);
    if (m->entries > (m->size - least) / RECORD_HEAD || m->hardlinks > m->entries ||
        m->entries * RECORD_HEAD + m->hardlinks * MANIFEST_LINK +
                manifest_groups(m->entries) * MANIFEST_INDEX >
            m->size - least)
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

/* --- hard links --- */

/* Hard links are checked without going back to the files that they lead to: the sum of hashes of (number, path) over all
 * hard links must be the sum over these files, each as often as the list of numbers says. The key of the hash is random, so
 * that nobody can make a manifest whose sums agree by chance. */
struct links {
    uint8_t key[crypto_shorthash_KEYBYTES];
    uint64_t read, count; /* numbers of the list */
    uint64_t next;        /* the next number; UINT64_MAX: there is none */
    uint64_t sum;
    size_t at, used;
    uint8_t window[MANIFEST_LINK * 512];
};

static int next_link(struct links *l, const struct manifest *m, struct error *e)
{
    uint64_t before = l->next;

    if (l->at == l->used) {
        uint64_t left = (l->count - l->read) * MANIFEST_LINK;
        l->at = 0;
        l->used = left < sizeof l->window ? (size_t)left : sizeof l->window;
        if (manifest_read_bytes(m, l->window, l->used,
                                manifest_links_place(m) + l->read * MANIFEST_LINK, e) != 0)
            return -1;
    }
    l->next = l->read == l->count ? UINT64_MAX : get_u64(l->window + l->at);
    if (l->read > 0 && l->next < before)
        return damaged("the list of its hard links is not in order", e);
    if (l->read < l->count) {
        l->read++;
        l->at += MANIFEST_LINK;
    }
    return 0;
}

static uint64_t hash(const struct links *l, uint64_t index, const char *path)
{
    uint8_t bytes[8 + MANIFEST_PATH_MOST], result[crypto_shorthash_BYTES];
    size_t length = strlen(path);

    memcpy(put_u64(bytes, index), path, length);
    (void)crypto_shorthash(result, bytes, 8 + length, l->key);
    return get_u64(result);
}

static int check_links(struct links *l, const struct manifest *m, const struct entry *entry,
                       struct error *e)
{
    if (entry->kind == ENTRY_HARDLINK)
        l->sum -= hash(l, entry->linked, entry->link);
    while (l->next == entry->index) {
        if (entry->kind != ENTRY_FILE)
            return damaged("a hard link leads to what is no file", e);
        l->sum += hash(l, entry->index, entry->path);
        if (next_link(l, m, e) != 0)
            return -1;
    }
    return 0;
}

static int begin_links(struct links *l, const struct manifest *m, struct error *e)
{
    crypto_shorthash_keygen(l->key);
    l->count = m->hardlinks;
    l->read = 0;
    l->sum = 0;
    l->at = l->used = 0;
    return next_link(l, m, e);
}

/* --- all --- */

static void count(struct manifest *m, enum entry_kind kind)
{
    m->files += kind == ENTRY_FILE;
    m->folders += kind == ENTRY_FOLDER;
    m->symlinks += kind == ENTRY_SYMLINK;
}

static int check_entries(struct manifest *m, struct manifest_cursor *c, struct error *e)
{
    struct links links;
    struct entry entry;

    if (begin_links(&links, m, e) != 0)
        return -1;
    for (uint64_t i = 0; i < m->entries; i++) {
        if (i % MANIFEST_STRIDE == 0 && check_index(m, c, i / MANIFEST_STRIDE, e) != 0)
            return -1;
        if (manifest_next(c, &entry, e) < 0 || check_links(&links, m, &entry, e) != 0)
            return -1;
        count(m, entry.kind);
    }
    if (manifest_cursor_place(c) != manifest_links_place(m))
        return damaged("there are bytes between its entries and its index", e);
    if (manifest_cursor_begin(c) != m->stream)
        return damaged("the size of its stream is wrong", e);
    if (links.next != UINT64_MAX || links.sum != 0 ||
        m->files + m->folders + m->symlinks + m->hardlinks != m->entries)
        return damaged("its hard links lead to what is not there", e);
    return 0;
}

int manifest_open(struct manifest *m, int file, uint64_t size, struct error *e)
{
    *m = (struct manifest){.file = file, .size = size};
    if (read_frame(m, e) != 0 || check_digest(m, e) != 0)
        return -1;
    struct manifest_cursor *c = manifest_cursor_new(m);
    int result = c != NULL ? check_entries(m, c, e) : refuse_memory(e);
    manifest_cursor_free(c);
    return result;
}
