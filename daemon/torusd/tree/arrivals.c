/* What records say about files is compared with the files. */
#include "daemon/torusd/tree/arrivals.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/engine/digest.h"

/* --- what records say about files is compared with the files --- */

uint64_t arrivals_stamp_of(uint64_t index, const struct stat *st)
{
    return file_stamp(index, st->st_ino, (uint64_t)st->st_size, st->st_ctim);
}

/* --- whole files --- */

static int open_stamps(struct arrivals *a, const struct staging *s, int flags)
{
    a->stamps = openat(s->folder, ARRIVALS_STAMPS, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
    return a->stamps >= 0 ? 0 : -errno;
}

int arrivals_find_stamps(struct arrivals *a, const struct staging *s, struct error *e)
{
    const int result = open_stamps(a, s, O_RDONLY);

    if (result == 0 || result == -ENOENT)
        return result == 0;
    return staging_failed(s, "read", -result, e);
}

int arrivals_open_stamps(struct arrivals *a, const struct staging *s, struct error *e)
{
    const int result = a->stamps >= 0 ? 0 : open_stamps(a, s, O_RDWR | O_CREAT);

    return result == 0 ? 0 : staging_failed(s, "recorded", -result, e);
}

/* If the disk is full, the file has no stamp, and is sent again if the copy does not end well. */
void arrivals_stamp_whole(const struct arrivals *a, uint64_t index, const struct stat *st)
{
    const uint64_t stamp = arrivals_stamp_of(index, st);

    if (a->stamps >= 0)
        (void)file_write(a->stamps, &stamp, sizeof stamp, index * sizeof stamp);
}

bool arrivals_whole_is_same(const struct arrivals *a, uint64_t index, const struct stat *st)
{
    uint64_t stamp = FILE_STAMP_NONE;

    return a->stamps >= 0 &&
           file_read(a->stamps, &stamp, sizeof stamp, index * sizeof stamp) == 0 &&
           stamp == arrivals_stamp_of(index, st);
}

int arrivals_check_staged(const struct arrivals *a, const struct staging *s,
                          const struct entry *entry, struct error *e)
{
    char name[STAGING_NAME_SIZE], path[2 * PATH_MAX + STAGING_NAME_SIZE];
    struct stat st;

    if (fstatat(s->folder, staging_file(entry->index, name), &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 0 : staging_failed(s, "examined", errno, e);
    if (a->stamps >= 0 ? arrivals_whole_is_same(a, entry->index, &st)
                       : S_ISREG(st.st_mode) && (uint64_t)st.st_size == entry->size)
        return 0;
    (void)snprintf(path, sizeof path, "%s/%s", s->shown, name);
    return file_stamp_changed(path, "copy again", e);
}

/* --- pieces --- */

void arrivals_note_piece(struct partial *p, struct arrived_piece piece, uint64_t bytes)
{
    if (piece.end - piece.begin > ARRIVALS_PIECE_MOST ||
        p->pieces > bytes / ARRIVALS_PIECE_LEAST + 64 ||
        intervals_contain(&p->spans, piece.begin, piece.end))
        return;
    if (GROW(p->piece, p->pieces, p->pieces_room) == 0)
        p->piece[p->pieces++] = piece;
}

/* Returns 1 if the file has these bytes, 0 or -errno. `block` has room for the longest piece. */
static int is_right(int file, struct file_data *data, const struct arrived_piece *piece,
                    uint8_t *block)
{
    const size_t length = (size_t)(piece->end - piece->begin);

    if (file_data_read(file, data, piece->begin, block, length) != 0)
        return errno == 0 ? 0 : -errno;
    return digest_bytes(block, length, 0) == piece->digest;
}

int arrivals_check_pieces(struct partial *p, int file, const struct file_data *data,
                          const struct tree_progress *progress)
{
    struct file_data reading = *data;
    struct intervals right = {0};
    uint64_t longest = 1;
    size_t kept = 0;

    for (size_t i = 0; i < p->pieces; i++) {
        const struct arrived_piece *piece = &p->piece[i];
        if (piece->begin >= piece->end || piece->end > data->bytes ||
            piece->end - piece->begin > ARRIVALS_PIECE_MOST)
            continue;
        longest = piece->end - piece->begin > longest ? piece->end - piece->begin : longest;
        p->piece[kept++] = *piece;
    }
    p->pieces = kept;
    uint8_t *block = malloc(longest);
    int result = block != NULL ? 0 : -ENOMEM;
    kept = 0;
    for (size_t i = 0; i < p->pieces && result >= 0; i++) {
        result = progress != NULL && atomic_load(&progress->stop)
                     ? -ECANCELED
                     : is_right(file, &reading, &p->piece[i], block);
        if (result == 1 && intervals_add(&right, p->piece[i].begin, p->piece[i].end) != 0)
            result = -ENOMEM;
        if (result == 1)
            p->piece[kept++] = p->piece[i];
    }
    p->pieces = kept;
    free(block);
    intervals_free(&p->spans);
    p->spans = right;
    return result < 0 ? result : 0;
}

/* --- files of which a part has arrived --- */

int arrivals_init(struct arrivals *a, uint64_t entries)
{
    *a = (struct arrivals){.entries = entries, .stamps = -1};
    a->whole = calloc(entries / 8 + 1, 1);
    return a->whole != NULL ? 0 : -1;
}

static void free_one(struct partial *p)
{
    file_close(&p->file);
    intervals_free(&p->spans);
    free(p->piece);
    free(p);
}

void arrivals_free(struct arrivals *a)
{
    for (size_t i = 0; i < ARRIVALS_BUCKETS; i++)
        while (a->partial[i] != NULL) {
            struct partial *p = a->partial[i];
            a->partial[i] = p->next;
            free_one(p);
        }
    if (a->whole != NULL && a->stamps >= 0)
        (void)close(a->stamps);
    free(a->whole);
    *a = (struct arrivals){.stamps = -1};
}

struct partial *arrivals_find(const struct arrivals *a, uint64_t index)
{
    struct partial *p = a->partial[index % ARRIVALS_BUCKETS];

    while (p != NULL && p->index != index)
        p = p->next;
    return p;
}

struct partial *arrivals_add(struct arrivals *a, uint64_t index)
{
    struct partial *p = calloc(1, sizeof *p), **bucket = &a->partial[index % ARRIVALS_BUCKETS];

    if (p == NULL)
        return NULL;
    p->index = index;
    p->file = -1;
    p->next = *bucket;
    *bucket = p;
    a->partials++;
    return p;
}

void arrivals_remove(struct arrivals *a, struct partial *p)
{
    struct partial **at = &a->partial[p->index % ARRIVALS_BUCKETS];

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    a->partials--;
    a->open -= p->file >= 0;
    free_one(p);
}

int arrivals_take_file(struct arrivals *a, struct partial *p)
{
    const int file = p->file;
    struct stat st;

    p->stamp = fstat(file, &st) == 0 ? arrivals_stamp_of(p->index, &st) : FILE_STAMP_NONE;
    p->file = -1;
    a->open--;
    return file;
}

void arrivals_close_some(struct arrivals *a)
{
    while (a->open > ARRIVALS_FILES_OPEN) {
        struct partial *oldest = NULL;
        for (size_t i = 0; i < ARRIVALS_BUCKETS; i++)
            for (struct partial *p = a->partial[i]; p != NULL; p = p->next)
                if (p->file >= 0 && p->users == 0 && (oldest == NULL || p->used < oldest->used))
                    oldest = p;
        if (oldest == NULL)
            return;
        (void)close(arrivals_take_file(a, oldest));
    }
}

/* --- the record --- */

/* The record of what has arrived. Numbers have the machine's byte order, because no other machine reads it:
 *
 *     struct head; a bit for each entry; for each partial file: struct part, spans, pieces; 16 bytes digest (BLAKE2b) of
 *     everything before */

#define RECORD_NEXT "arrived.new"
#define RESERVE "reserve"
#define RESERVE_MORE 65536              /* bytes, for partial files, */
#define PIECE_USUAL 65536u              /* and for each piece of them */
#define RECORD_MOST (UINT64_C(1) << 32) /* bytes */
#define DIGEST 16u

struct head {
    char magic[8];
    char boot[BOOT_ID_SIZE];
    uint8_t manifest[16];
    uint64_t entries, partials;
};

struct part {
    uint64_t index, stamp, spans, pieces;
};

static const char magic[8] = {'a', 'r', 'r', 'i', 'v', 'e', 'd', '2'};

/* --- writing --- */

static size_t size_of(const struct arrivals *a)
{
    size_t size = sizeof(struct head) + a->entries / 8 + 1 + DIGEST;

    for (size_t i = 0; i < ARRIVALS_BUCKETS; i++)
        for (const struct partial *p = a->partial[i]; p != NULL; p = p->next)
            size += sizeof(struct part) + p->spans.count * sizeof(struct interval) +
                    p->pieces * sizeof(struct arrived_piece);
    return size;
}

static uint8_t *put(uint8_t *at, const void *bytes, size_t length)
{
    if (length > 0)
        memcpy(at, bytes, length);
    return at + length;
}

/* The stamp of a file to which somebody may be writing just now: then it will differ, and the digests count. */
static uint64_t stamp_now(const struct partial *p)
{
    struct stat st;

    if (p->file < 0)
        return p->stamp;
    return fstat(p->file, &st) == 0 ? arrivals_stamp_of(p->index, &st) : FILE_STAMP_NONE;
}

static void fill(const struct arrivals *a, const uint8_t digest[16], uint8_t *bytes, size_t size)
{
    struct head head = {.entries = a->entries, .partials = a->partials};
    uint8_t *at = bytes + sizeof head;

    memcpy(head.magic, magic, sizeof magic);
    memcpy(head.manifest, digest, sizeof head.manifest);
    read_boot_id(head.boot);
    memcpy(bytes, &head, sizeof head);
    at = put(at, a->whole, a->entries / 8 + 1);
    for (size_t i = 0; i < ARRIVALS_BUCKETS; i++)
        for (const struct partial *p = a->partial[i]; p != NULL; p = p->next) {
            const struct part part = {p->index, stamp_now(p), p->spans.count, p->pieces};
            at = put(at, &part, sizeof part);
            at = put(at, p->spans.item, p->spans.count * sizeof(struct interval));
            at = put(at, p->piece, p->pieces * sizeof(struct arrived_piece));
        }
    (void)crypto_generichash(at, DIGEST, bytes, size - DIGEST, NULL, 0);
}

int arrivals_save(const struct arrivals *a, const struct staging *s, const char *name,
                  const uint8_t digest[16], struct error *e)
{
    size_t size = size_of(a);
    uint8_t *bytes = malloc(size);

    if (bytes == NULL)
        return staging_failed(s, "recorded", ENOMEM, e);
    fill(a, digest, bytes, size);
    int result =
        file_replace(file_system_posix(), s->folder, RECORD_NEXT, name, bytes, size, false);
    if ((result == -ENOSPC || result == -EDQUOT) && unlinkat(s->folder, RESERVE, 0) == 0)
        result =
            file_replace(file_system_posix(), s->folder, RECORD_NEXT, name, bytes, size, false);
    free(bytes);
    return result == 0 ? 0 : staging_failed(s, "recorded", -result, e);
}

void arrivals_reserve(const struct arrivals *a, const struct staging *s, uint64_t bytes)
{
    const uint64_t pieces = bytes / PIECE_USUAL * sizeof(struct arrived_piece);
    int file = openat(s->folder, RESERVE, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (file < 0)
        return;
    (void)posix_fallocate(file, 0, (off_t)(size_of(a) + RESERVE_MORE + pieces));
    (void)close(file);
    if (a->stamps >= 0)
        (void)posix_fallocate(a->stamps, 0, (off_t)(a->entries * sizeof(uint64_t)));
}

/* --- reading --- */

/* Reads a record with all its bytes. Returns 1 with *bytes, 0 if it is missing or damaged, -1 with *e. */
static int read_record(const struct staging *s, const char *name, uint8_t **bytes, size_t *size,
                       struct error *e)
{
    uint8_t digest[DIGEST];
    struct stat st;
    int file = openat(s->folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), result = 0;

    if (file < 0)
        return errno == ENOENT ? 0 : staging_failed(s, "read", errno, e);
    if (fstat(file, &st) == 0 && (uint64_t)st.st_size >= sizeof(struct head) + DIGEST &&
        (uint64_t)st.st_size <= RECORD_MOST) {
        *size = (size_t)st.st_size;
        *bytes = malloc(*size);
        if (*bytes == NULL)
            result = staging_failed(s, "read", ENOMEM, e);
        else if (file_read(file, *bytes, *size, 0) == 0 &&
                 crypto_generichash(digest, DIGEST, *bytes, *size - DIGEST, NULL, 0) == 0 &&
                 memcmp(digest, *bytes + *size - DIGEST, DIGEST) == 0)
            result = 1;
        if (result != 1) {
            free(*bytes);
            *bytes = NULL;
        }
    }
    (void)close(file);
    return result;
}

/* Takes one partial file, whose spans and pieces are at *at. Returns 0; -1: no memory, or it is damaged. */
static int take_partial(struct arrivals *a, const struct part *part, const uint8_t **at)
{
    struct partial *p = arrivals_add(a, part->index);

    if (p == NULL)
        return -1;
    p->stamp = part->stamp;
    for (uint64_t n = 0; n < part->spans; n++, *at += sizeof(struct interval)) {
        struct interval span;
        memcpy(&span, *at, sizeof span);
        if (intervals_add(&p->spans, span.begin, span.end) != 0)
            return -1;
    }
    if (part->pieces == 0)
        return 0;
    p->piece = malloc(part->pieces * sizeof *p->piece);
    if (p->piece == NULL)
        return -1;
    memcpy(p->piece, *at, part->pieces * sizeof *p->piece);
    *at += part->pieces * sizeof *p->piece;
    p->pieces = p->pieces_room = part->pieces;
    return 0;
}

/* Takes partial files from a record. Returns 0; -1: no memory, or it is damaged. */
static int take_partials(struct arrivals *a, const uint8_t *at, const uint8_t *end, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct part part;
        if ((size_t)(end - at) < sizeof part)
            return -1;
        memcpy(&part, at, sizeof part);
        at += sizeof part;
        const size_t left = (size_t)(end - at);
        if (part.index >= a->entries || arrivals_find(a, part.index) != NULL ||
            part.spans > left / sizeof(struct interval) ||
            part.pieces >
                (left - part.spans * sizeof(struct interval)) / sizeof(struct arrived_piece) ||
            take_partial(a, &part, &at) != 0)
            return -1;
    }
    return 0;
}

/* Takes a record, if it is one of this manifest, and of this run of the system if `boot` is not NULL. Returns whether it
 * was taken. */
static bool take(struct arrivals *a, const uint8_t *bytes, size_t size, const uint8_t digest[16],
                 const char *boot)
{
    struct head head;
    const uint8_t *at = bytes + sizeof head, *end = bytes + size - DIGEST;

    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.magic, magic, sizeof magic) != 0 || head.entries != a->entries ||
        memcmp(head.manifest, digest, sizeof head.manifest) != 0 ||
        (boot != NULL && (boot[0] == '\0' || memcmp(head.boot, boot, BOOT_ID_SIZE) != 0)) ||
        a->entries / 8 + 1 > (size_t)(end - at))
        return false;
    memcpy(a->whole, at, a->entries / 8 + 1);
    return take_partials(a, at + a->entries / 8 + 1, end, head.partials) == 0;
}

int arrivals_load(struct arrivals *a, const struct staging *s, const uint8_t digest[16],
                  struct error *e)
{
    static const char *const name[] = {STAGING_ARRIVED, ARRIVALS_SYNCED};
    char boot[BOOT_ID_SIZE];
    bool taken = false;

    read_boot_id(boot);
    if (arrivals_open_stamps(a, s, e) != 0)
        return -1;
    for (unsigned i = 0; i < 2 && !taken; i++) {
        uint8_t *bytes = NULL;
        size_t size = 0;
        int found = read_record(s, name[i], &bytes, &size, e);
        if (found < 0)
            return -1;
        taken = found == 1 && take(a, bytes, size, digest, i == 0 ? boot : NULL);
        free(bytes);
        if (!taken) {
            uint64_t entries = a->entries;
            arrivals_free(a);
            if (arrivals_init(a, entries) != 0)
                return staging_failed(s, "read", ENOMEM, e);
            if (arrivals_open_stamps(a, s, e) != 0)
                return -1;
        }
    }
    return 0;
}

int arrivals_forget(const struct staging *s, struct error *e)
{
    static const char *const name[] = {STAGING_ARRIVED, ARRIVALS_SYNCED, RECORD_NEXT,
                                       ARRIVALS_STAMPS};

    for (unsigned i = 0; i < sizeof name / sizeof *name; i++)
        if (unlinkat(s->folder, name[i], 0) != 0 && errno != ENOENT)
            return staging_failed(s, "removed", errno, e);
    return 0;
}
