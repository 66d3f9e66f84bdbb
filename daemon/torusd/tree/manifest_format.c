#include "daemon/torusd/tree/manifest_format.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

const char record_no_memory[] = "there is no memory for it";

uint16_t get_u16(const uint8_t *at)
{
    uint16_t value;

    memcpy(&value, at, sizeof value);
    return le16toh(value);
}

uint32_t get_u32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof value);
    return le32toh(value);
}

uint64_t get_u64(const uint8_t *at)
{
    uint64_t value;

    memcpy(&value, at, sizeof value);
    return le64toh(value);
}

uint8_t *put_u16(uint8_t *at, uint64_t value)
{
    uint16_t little = htole16((uint16_t)value);

    memcpy(at, &little, sizeof little);
    return at + sizeof little;
}

uint8_t *put_u32(uint8_t *at, uint64_t value)
{
    uint32_t little = htole32((uint32_t)value);

    memcpy(at, &little, sizeof little);
    return at + sizeof little;
}

uint8_t *put_u64(uint8_t *at, uint64_t value)
{
    uint64_t little = htole64(value);

    memcpy(at, &little, sizeof little);
    return at + sizeof little;
}

static uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t length)
{
    if (length > 0)
        memcpy(at, bytes, length);
    return at + length;
}

/* The place of a byte in the order: '/' comes directly behind the end. */
static unsigned order_of(char c)
{
    return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 1u;
}

int manifest_compare_paths(const char *a, const char *b)
{
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    return (int)order_of(*a) - (int)order_of(*b);
}

bool manifest_path_is_in(const char *path, const char *folder, size_t length)
{
    return length == 0 || (strncmp(path, folder, length) == 0 && path[length] == '/');
}

/* --- checks --- */

static const char *check_names(const char *path, size_t length)
{
    for (size_t at = 0; at <= length;) {
        const char *end = memchr(path + at, '/', length - at);
        size_t name = (end != NULL ? (size_t)(end - path) : length) - at;
        if (name == 0)
            return "its path has an empty name";
        if (name > NAME_MOST)
            return "a name in its path is too long";
        if (path[at] == '.' && (name == 1 || (name == 2 && path[at + 1] == '.')))
            return "its path contains \".\" or \"..\"";
        at += name + 1;
    }
    return NULL;
}

/* The folder of an entry comes before it; between them is only what that folder holds. */
static bool folder_is_there(const struct record_state *s, const char *path, size_t length)
{
    const char *last = s->path[s->now];
    const char *end = memrchr(path, '/', length);
    size_t folder = end == NULL ? 0 : (size_t)(end - path);

    if (!s->known)
        return folder == 0;
    if (s->path_length == 0)
        return s->kind == ENTRY_FOLDER && folder == 0;
    if (folder == 0)
        return true;
    if (s->path_length < folder || memcmp(last, path, folder) != 0)
        return false;
    return s->path_length == folder ? s->kind == ENTRY_FOLDER : last[folder] == '/';
}

const char *entry_check_path(const struct record_state *s, uint64_t index, const char *path,
                             size_t length)
{
    if (length > MANIFEST_PATH_MOST)
        return "its path is too long";
    if (memchr(path, '\0', length) != NULL)
        return "its path contains a 0 byte";
    if (length == 0)
        return index == 0 ? NULL : "its path is empty";
    const char *wrong = check_names(path, length);
    if (wrong != NULL)
        return wrong;
    if (s->known && manifest_compare_paths(s->path[s->now], path) >= 0)
        return "it is not in order";
    if ((s->known || index == 0) && !folder_is_there(s, path, length))
        return "its folder is not there";
    return NULL;
}

static const char *check_extents(struct entry *entry)
{
    uint64_t end = 0;

    if (entry->extents > MANIFEST_EXTENTS_MOST)
        return "it has too many extents";
    entry->bytes = 0;
    for (uint32_t i = 0; i < entry->extents; i++) {
        const struct extent_of_file *x = &entry->extent[i];
        if (x->length == 0 || x->offset > entry->size || x->length > entry->size - x->offset)
            return "an extent is not in the file";
        if (i > 0 && x->offset <= end)
            return "its extents touch, or are not in order";
        end = x->offset + x->length;
        entry->bytes += x->length;
    }
    return entry->bytes < entry->size ? NULL : "its extents leave no hole";
}

static const char *check_attributes(const uint8_t *at, size_t left)
{
    const char *before = "";

    while (left > 0) {
        const char *name = (const char *)at;
        const uint8_t *end = memchr(at, '\0', left);
        size_t length = end != NULL ? (size_t)(end - at) : 0;
        if (length == 0 || length > NAME_MOST)
            return "an attribute has no name, or a name that is too long";
        if (strcmp(before, name) >= 0)
            return "its attributes are not in order";
        if (left - length - 1 < 4 || left - length - 5 < get_u32(end + 1))
            return "an attribute is too long";
        before = name;
        length += 5 + get_u32(end + 1);
        at += length;
        left -= length;
    }
    return NULL;
}

static const char *check_kind(struct entry *entry)
{
    entry->bytes = entry->kind == ENTRY_FILE ? entry->size : 0;
    if (entry->kind != ENTRY_FILE &&
        (entry->size != 0 || entry->extent != NULL || entry->has_digest))
        return "it is not a file, but has contents";
    if (entry->size > INT64_MAX)
        return "it is too large";
    if (entry->extent != NULL && entry->kind == ENTRY_FILE)
        return check_extents(entry);
    if (entry->kind != ENTRY_SYMLINK && entry->kind != ENTRY_HARDLINK)
        return NULL;
    if (entry->path_length == 0)
        return "a link needs a name";
    if (entry->kind == ENTRY_HARDLINK && entry->linked >= entry->index)
        return "it is a hard link to an entry that is not before it";
    size_t length = strnlen(entry->link, MANIFEST_PATH_MOST + 1);
    if (length > MANIFEST_PATH_MOST || (length == 0 && entry->kind == ENTRY_SYMLINK))
        return "its text is empty, or too long";
    return NULL;
}

const char *entry_check(struct entry *entry)
{
    if (entry->kind < ENTRY_FOLDER || entry->kind > ENTRY_HARDLINK)
        return "it is of an unknown kind";
    if (entry->mode > 07777)
        return "its mode is not one";
    if (entry->modified.tv_nsec < 0 || entry->modified.tv_nsec >= 1000000000)
        return "its time is not one";
    if (entry->attributes_length > MANIFEST_ATTRIBUTES_MOST)
        return "it has too many attributes";
    const char *wrong = check_attributes(entry->attributes, entry->attributes_length);
    return wrong != NULL ? wrong : check_kind(entry);
}

void record_state_advance(struct record_state *s, const struct entry *entry)
{
    if (entry->path != s->path[!s->now])
        memcpy(s->path[!s->now], entry->path, entry->path_length + 1);
    s->now = !s->now;
    s->path_length = entry->path_length;
    s->kind = entry->kind;
    s->known = true;
}

void record_state_free(struct record_state *s)
{
    free(s->extent);
    s->extent = NULL;
    s->extents_room = 0;
}

/* --- writing --- */

static unsigned flags_of(const struct entry *entry)
{
    return (entry->has_digest ? RECORD_DIGEST : 0) | (entry->extent != NULL ? RECORD_HOLES : 0) |
           (entry->attributes_length > 0 ? RECORD_ATTRIBUTES : 0);
}

size_t record_size(const struct entry *entry, size_t shared)
{
    size_t size = RECORD_HEAD + entry->path_length - shared;

    if (entry->kind == ENTRY_FILE)
        size += 8 + (entry->extent != NULL ? 12 + 16 * (size_t)entry->extents : 0) +
                (entry->has_digest ? MANIFEST_DIGEST : 0);
    if (entry->kind == ENTRY_SYMLINK)
        size += 2 + strlen(entry->link);
    if (entry->kind == ENTRY_HARDLINK)
        size += 10 + strlen(entry->link);
    return size + (entry->attributes_length > 0 ? 4 + (size_t)entry->attributes_length : 0);
}

static uint8_t *put_file(uint8_t *at, const struct entry *entry)
{
    at = put_u64(at, entry->size);
    if (entry->extent != NULL) {
        at = put_u32(put_u64(at, entry->bytes), entry->extents);
        for (uint32_t i = 0; i < entry->extents; i++) {
            at = put_u64(at, entry->extent[i].offset);
            at = put_u64(at, entry->extent[i].length);
        }
    }
    return entry->has_digest ? put_bytes(at, entry->digest, MANIFEST_DIGEST) : at;
}

static uint8_t *put_link(uint8_t *at, const struct entry *entry)
{
    size_t length = strlen(entry->link);

    if (entry->kind == ENTRY_HARDLINK)
        at = put_u64(at, entry->linked);
    return put_bytes(put_u16(at, length), entry->link, length);
}

void record_write(const struct entry *entry, size_t shared, uint8_t *at)
{
    at = put_u32(at, record_size(entry, shared));
    *at++ = (uint8_t)entry->kind;
    *at++ = (uint8_t)flags_of(entry);
    at = put_u16(at, entry->mode);
    at = put_u16(at, shared);
    at = put_u16(at, entry->path_length - shared);
    at = put_u32(at, entry->owner);
    at = put_u32(at, entry->group);
    at = put_u64(at, (uint64_t)entry->modified.tv_sec);
    at = put_u32(at, (uint64_t)entry->modified.tv_nsec);
    at = put_bytes(at, entry->path + shared, entry->path_length - shared);
    if (entry->kind == ENTRY_FILE)
        at = put_file(at, entry);
    if (entry->kind == ENTRY_SYMLINK || entry->kind == ENTRY_HARDLINK)
        at = put_link(at, entry);
    if (entry->attributes_length > 0) {
        at = put_u32(at, entry->attributes_length);
        (void)put_bytes(at, entry->attributes, entry->attributes_length);
    }
}

/* --- reading --- */

struct bytes {
    const uint8_t *at;
    size_t left;
};

/* Takes bytes from the front; NULL if there are fewer. */
static const uint8_t *take(struct bytes *b, size_t length)
{
    const uint8_t *at = b->at;

    if (b->left < length)
        return NULL;
    b->at += length;
    b->left -= length;
    return at;
}

static const char *too_short = "its record is too short";

static const char *read_path(struct record_state *s, struct bytes *b, size_t shared, size_t length,
                             struct entry *entry)
{
    char *path = s->path[!s->now];
    const uint8_t *own = take(b, length);

    if (own == NULL)
        return too_short;
    if (shared > (s->known ? s->path_length : 0) || shared + length > MANIFEST_PATH_MOST ||
        (shared > 0 && entry->index % MANIFEST_STRIDE == 0))
        return "the length of its path is wrong";
    memcpy(path, s->path[s->now], shared);
    memcpy(path + shared, own, length);
    path[shared + length] = '\0';
    entry->path = path;
    entry->path_length = shared + length;
    return entry_check_path(s, entry->index, path, shared + length);
}

static const char *read_extents(struct record_state *s, struct bytes *b, struct entry *entry)
{
    const uint8_t *at = take(b, 12);

    if (at == NULL)
        return too_short;
    entry->bytes = get_u64(at);
    entry->extents = get_u32(at + 8);
    if (entry->extents > MANIFEST_EXTENTS_MOST)
        return "it has too many extents";
    at = take(b, 16 * (size_t)entry->extents);
    if (at == NULL)
        return too_short;
    if (s->extent == NULL || s->extents_room < entry->extents) {
        uint32_t room = entry->extents < 16 ? 16 : entry->extents;
        struct extent_of_file *extent = reallocarray(s->extent, room, sizeof *extent);
        if (extent == NULL)
            return record_no_memory;
        s->extent = extent;
        s->extents_room = room;
    }
    for (uint32_t i = 0; i < entry->extents; i++)
        s->extent[i] =
            (struct extent_of_file){get_u64(at + 16 * (size_t)i), get_u64(at + 16 * (size_t)i + 8)};
    entry->extent = s->extent;
    return NULL;
}

static const char *read_file(struct record_state *s, struct bytes *b, unsigned flags,
                             struct entry *entry)
{
    const uint8_t *at = take(b, 8);

    if (at == NULL)
        return too_short;
    entry->size = get_u64(at);
    const char *wrong = (flags & RECORD_HOLES) != 0 ? read_extents(s, b, entry) : NULL;
    if (wrong != NULL || (flags & RECORD_DIGEST) == 0)
        return wrong;
    at = take(b, MANIFEST_DIGEST);
    if (at == NULL)
        return too_short;
    memcpy(entry->digest, at, MANIFEST_DIGEST);
    entry->has_digest = true;
    return NULL;
}

static const char *read_link(struct record_state *s, struct bytes *b, struct entry *entry)
{
    if (entry->kind == ENTRY_HARDLINK) {
        const uint8_t *number = take(b, 8);
        if (number == NULL)
            return too_short;
        entry->linked = get_u64(number);
    }
    const uint8_t *at = take(b, 2);
    size_t length = at != NULL ? get_u16(at) : 0;
    at = at != NULL ? take(b, length) : NULL;
    if (at == NULL)
        return too_short;
    if (length > MANIFEST_PATH_MOST || memchr(at, '\0', length) != NULL)
        return "its text is too long, or contains a 0 byte";
    memcpy(s->link, at, length);
    s->link[length] = '\0';
    entry->link = s->link;
    return NULL;
}

static const char *read_rest(struct record_state *s, struct bytes *b, unsigned flags,
                             struct entry *entry)
{
    const char *wrong = NULL;

    if (entry->kind == ENTRY_FILE)
        wrong = read_file(s, b, flags, entry);
    else if ((flags & (RECORD_HOLES | RECORD_DIGEST)) != 0)
        wrong = "it is not a file, but has contents";
    else if (entry->kind == ENTRY_SYMLINK || entry->kind == ENTRY_HARDLINK)
        wrong = read_link(s, b, entry);
    if (wrong != NULL)
        return wrong;
    if ((flags & RECORD_ATTRIBUTES) != 0) {
        const uint8_t *at = take(b, 4);
        entry->attributes_length = at != NULL ? get_u32(at) : 0;
        entry->attributes = at != NULL ? take(b, entry->attributes_length) : NULL;
        if (entry->attributes == NULL || entry->attributes_length == 0)
            return "its attributes are too short";
    }
    return b->left == 0 ? NULL : "its record is too long";
}

const char *record_read(struct record_state *s, const uint8_t *at, struct entry *entry)
{
    struct bytes b = {at + RECORD_HEAD, get_u32(at) - RECORD_HEAD};
    unsigned flags = at[5];

    *entry = (struct entry){
        .index = entry->index,
        .kind = (enum entry_kind)at[4],
        .mode = get_u16(at + 6),
        .owner = get_u32(at + 12),
        .group = get_u32(at + 16),
        .modified = {.tv_sec = (time_t)get_u64(at + 20), .tv_nsec = (long)get_u32(at + 28)},
    };
    if (flags > (RECORD_DIGEST | RECORD_HOLES | RECORD_ATTRIBUTES))
        return "it has unknown flags";
    const char *wrong = read_path(s, &b, get_u16(at + 8), get_u16(at + 10), entry);
    if (wrong == NULL)
        wrong = read_rest(s, &b, flags, entry);
    uint64_t bytes = entry->bytes;
    if (wrong == NULL)
        wrong = entry_check(entry);
    if (wrong == NULL && (flags & RECORD_HOLES) != 0 && bytes != entry->bytes)
        wrong = "its extents have another length";
    return wrong;
}

const char *record_skip(struct record_state *s, const uint8_t *at, size_t length,
                        struct entry *entry)
{
    struct bytes b = {at + RECORD_HEAD, length - RECORD_HEAD};
    size_t before = (at[5] & RECORD_HOLES) != 0 ? 8 : 0;

    *entry = (struct entry){.index = entry->index, .kind = (enum entry_kind)at[4]};
    const char *wrong = read_path(s, &b, get_u16(at + 8), get_u16(at + 10), entry);
    if (wrong != NULL || entry->kind != ENTRY_FILE)
        return wrong;
    const uint8_t *bytes = take(&b, before + 8);
    if (bytes == NULL)
        return too_short;
    entry->bytes = get_u64(bytes + before);
    return NULL;
}
