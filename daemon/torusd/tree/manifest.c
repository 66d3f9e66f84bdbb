#include "daemon/torusd/tree/manifest.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/manifest_format.h"

/* --- reading --- */

#define WINDOW                                                                                     \
    16384u /* bytes that are read at once: about as many as between two entries of the index */

struct manifest_cursor {
    const struct manifest *m;
    uint64_t end; /* place behind the last record */
    struct record_state last;
    uint64_t index, place, begin; /* of the next entry */
    uint8_t *window;              /* bytes of the file */
    size_t window_room, window_used;
    uint64_t window_place;
    struct entry found; /* the next entry, already read */
    bool is_found;
};

/* Places in a manifest: of the index, and of the numbers that hard links lead to. */
static uint64_t manifest_index_place(const struct manifest *m)
{
    return m->size - MANIFEST_TAIL - manifest_groups(m->entries) * MANIFEST_INDEX;
}

static uint64_t manifest_links_place(const struct manifest *m)
{
    return manifest_index_place(m) - m->hardlinks * MANIFEST_LINK;
}

static int refuse_memory(struct error *e)
{
    return error_set(e, ERROR_MEMORY, "out of memory for a manifest");
}

struct manifest_cursor *manifest_cursor_new(const struct manifest *m)
{
    struct manifest_cursor *c = calloc(1, sizeof *c);

    if (c == NULL)
        return NULL;
    c->window = malloc(WINDOW);
    if (c->window == NULL) {
        free(c);
        return NULL;
    }
    c->window_room = WINDOW;
    c->m = m;
    c->end = manifest_links_place(m);
    c->place = MANIFEST_HEAD;
    return c;
}

void manifest_cursor_free(struct manifest_cursor *c)
{
    if (c == NULL)
        return;
    record_state_free(&c->last);
    free(c->window);
    free(c);
}

static int damaged_at(const struct manifest_cursor *c, const char *what, struct error *e)
{
    if (what == record_no_memory)
        return refuse_memory(e);
    return error_set(e, ERROR_PROTOCOL, "the manifest is damaged at entry %llu: %s",
                     (unsigned long long)c->index, what);
}

/* Reads bytes of a manifest. Returns 0, or -1 with *e. */
static int manifest_read_bytes(const struct manifest *m, void *bytes, size_t length,
                               uint64_t offset, struct error *e)
{
    if (file_read(m->file, bytes, length, offset) == 0)
        return 0;
    return error_set(e, errno == 0 ? ERROR_PROTOCOL : ERROR_IO, "the manifest cannot be read: %s",
                     errno == 0 ? "it is too short" : strerror(errno));
}

/* Makes the next `length` bytes available in the window. They lie before the index. */
static int load(struct manifest_cursor *c, size_t length, struct error *e)
{
    uint64_t offset = c->place - c->window_place;

    if (c->place >= c->window_place && offset <= c->window_used &&
        c->window_used - offset >= length)
        return 0;
    if (length > c->window_room) {
        uint8_t *window = realloc(c->window, length);
        if (window == NULL)
            return refuse_memory(e);
        c->window = window;
        c->window_room = length;
    }
    uint64_t left = c->end - c->place;
    size_t most = left < c->window_room ? (size_t)left : c->window_room;
    c->window_used = 0;
    if (manifest_read_bytes(c->m, c->window, most, c->place, e) != 0)
        return -1;
    c->window_place = c->place;
    c->window_used = most;
    return 0;
}

/* Finds the length of the next record. */
static int find_length(struct manifest_cursor *c, size_t *length, struct error *e)
{
    if (c->end - c->place < RECORD_HEAD)
        return damaged_at(c, "it is not there", e);
    if (load(c, RECORD_HEAD, e) != 0)
        return -1;
    *length = get_u32(c->window + (c->place - c->window_place));
    if (*length < RECORD_HEAD || *length > RECORD_MOST || *length > c->end - c->place)
        return damaged_at(c, "its length is wrong", e);
    return 0;
}

/* Makes the entry that was read the last one. */
static int pass(struct manifest_cursor *c, struct entry *entry, size_t length, struct error *e)
{
    if (entry->bytes > INT64_MAX - c->begin)
        return damaged_at(c, "all files together are too large", e);
    record_state_advance(&c->last, entry);
    entry->begin = entry->kind == ENTRY_FILE ? c->begin : 0;
    c->begin += entry->bytes;
    c->place += length;
    c->index++;
    return 0;
}

static int read_next(struct manifest_cursor *c, struct entry *entry, struct error *e)
{
    size_t length;

    if (c->index == c->m->entries)
        return 0;
    if (find_length(c, &length, e) != 0 || load(c, length, e) != 0)
        return -1;
    entry->index = c->index;
    const char *wrong = record_read(&c->last, c->window + (c->place - c->window_place), entry);
    if (wrong != NULL)
        return damaged_at(c, wrong, e);
    return pass(c, entry, length, e) == 0 ? 1 : -1;
}

/* Passes over entries up to one with this number, or up to the file of a byte of the stream. Reads as little of them as
 * possible. Returns 1, 0 behind the last entry, or -1 with *e. */
static int skip_to(struct manifest_cursor *c, uint64_t index, uint64_t offset, struct error *e)
{
    struct entry entry;
    size_t length;

    while (c->index < index) {
        if (c->index == c->m->entries)
            return 0;
        if (find_length(c, &length, e) != 0)
            return -1;
        size_t part = length < RECORD_SKIPPED ? length : RECORD_SKIPPED;
        if (load(c, part, e) != 0)
            return -1;
        entry.index = c->index;
        const char *wrong =
            record_skip(&c->last, c->window + (c->place - c->window_place), part, &entry);
        if (wrong != NULL)
            return damaged_at(c, wrong, e);
        if (offset < c->begin + entry.bytes)
            return 1;
        if (pass(c, &entry, length, e) != 0)
            return -1;
    }
    return 1;
}

int manifest_next(struct manifest_cursor *c, struct entry *entry, struct error *e)
{
    if (!c->is_found)
        return read_next(c, entry, e);
    *entry = c->found;
    c->is_found = false;
    return 1;
}

int manifest_each(const struct manifest *m,
                  int (*each)(void *context, const struct entry *entry, struct error *e),
                  void *context, struct error *e)
{
    struct manifest_cursor *c = manifest_cursor_new(m);
    struct entry entry;
    int result = c != NULL ? 1 : refuse_memory(e);

    while (result == 1 && (result = manifest_next(c, &entry, e)) == 1)
        if (each(context, &entry, e) != 0)
            result = -1;
    manifest_cursor_free(c);
    return result;
}

/* Reads an item of the index. */
static int read_index(const struct manifest *m, uint64_t group, uint64_t *place, uint64_t *begin,
                      struct error *e)
{
    uint8_t item[MANIFEST_INDEX];

    if (manifest_read_bytes(m, item, sizeof item, manifest_index_place(m) + group * sizeof item,
                            e) != 0)
        return -1;
    *place = get_u64(item);
    *begin = get_u64(item + 8);
    return 0;
}

/* Goes to the first entry of a group. */
static int enter_group(struct manifest_cursor *c, uint64_t group, struct error *e)
{
    uint64_t place, begin;

    if (read_index(c->m, group, &place, &begin, e) != 0)
        return -1;
    c->index = group * MANIFEST_STRIDE;
    if (place < MANIFEST_HEAD || place > c->end || begin > c->m->stream)
        return damaged_at(c, "its place in the index is wrong", e);
    c->place = place;
    c->begin = begin;
    c->last.known = false;
    c->is_found = false;
    return 0;
}

static void go_to_end(struct manifest_cursor *c)
{
    c->index = c->m->entries;
    c->place = c->end;
    c->begin = c->m->stream;
    c->is_found = false;
}

int manifest_seek_index(struct manifest_cursor *c, uint64_t index, struct error *e)
{
    if (index >= c->m->entries) {
        go_to_end(c);
        return 0;
    }
    if (c->is_found && c->found.index == index)
        return 0;
    /* A short distance ahead is read, so that links to neighbouring entries cost little. */
    if ((index < c->index || index - c->index >= MANIFEST_STRIDE) &&
        enter_group(c, index / MANIFEST_STRIDE, e) != 0)
        return -1;
    c->is_found = false;
    return skip_to(c, index, UINT64_MAX, e) < 0 ? -1 : 0;
}

/* Finds the last group that begins at or before a place in the stream. */
static int find_group(const struct manifest *m, uint64_t offset, uint64_t *group, struct error *e)
{
    uint64_t low = 0, high = manifest_groups(m->entries), place, begin;

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (read_index(m, middle, &place, &begin, e) != 0)
            return -1;
        if (begin <= offset)
            low = middle;
        else
            high = middle;
    }
    *group = low;
    return 0;
}

int manifest_seek_stream(struct manifest_cursor *c, uint64_t offset, struct error *e)
{
    uint64_t group;
    int result;

    if (offset >= c->m->stream) {
        go_to_end(c);
        return 0;
    }
    if (find_group(c->m, offset, &group, e) != 0 || enter_group(c, group, e) != 0)
        return -1;
    result = skip_to(c, UINT64_MAX, offset, e);
    if (result == 1)
        result = read_next(c, &c->found, e);
    if (result < 0)
        return -1;
    if (result == 0 || c->found.kind != ENTRY_FILE || offset - c->found.begin >= c->found.bytes)
        return damaged_at(c, "a part of the stream belongs to no file", e);
    c->is_found = true;
    return 0;
}

/* --- the check --- */

static int damaged(const char *what, struct error *e)
{
    return error_set(e, ERROR_PROTOCOL, "the manifest is damaged: %s", what);
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
    if (get_u64(item) != c->place || get_u64(item + 8) != c->begin)
        return damaged("its index is wrong", e);
    return 0;
}

/* --- hard links --- */

/* Hard links are checked without going back to the files that they lead to: the sum of hashes of (number, path) over
 * all hard links must be the sum over these files, each as often as the list of numbers says. The key of the hash is
 * random, so that nobody can make a manifest whose sums agree by chance. */
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
            return damaged("a hard link leads to an entry that is not a file", e);
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
    if (c->place != manifest_links_place(m))
        return damaged("there are bytes between its entries and its index", e);
    if (c->begin != m->stream)
        return damaged("the size of its stream is wrong", e);
    if (links.next != UINT64_MAX || links.sum != 0 ||
        m->files + m->folders + m->symlinks + m->hardlinks != m->entries)
        return damaged("its hard links lead to entries that do not exist", e);
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
