#include "daemon/torusd/tree/stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/file_data.h"
#include "daemon/torusd/tree/sources.h"

/* Opens the next files of a stream before they are read, and tells the kernel to load them: small files on a disk are so
 * loaded several at a time. */

#define AHEAD_FILES 16u
struct ahead;

#define LOADED_MOST (256 * 1024) /* bytes of a file; behind them the kernel reads ahead by itself */

struct ahead {
    const struct sources *sources;
    struct manifest_cursor *cursor;
    uint64_t next; /* where the file begins that is opened next */
    bool known;    /* whether the cursor is there */
    struct {
        uint64_t index;
        int file;
    } open[AHEAD_FILES]; /* a ring */
    unsigned first, count;
};

static struct ahead *ahead_new(const struct manifest *manifest, const struct sources *sources)
{
    struct ahead *a = calloc(1, sizeof *a);

    if (a == NULL)
        return NULL;
    a->sources = sources;
    a->cursor = manifest_cursor_new(manifest);
    if (a->cursor != NULL)
        return a;
    free(a);
    return NULL;
}

/* Closes all files. */
static void ahead_close(struct ahead *a)
{
    for (; a->count > 0; a->count--) {
        (void)close(a->open[a->first].file);
        a->first = (a->first + 1) % AHEAD_FILES;
    }
    a->known = false;
}

static void ahead_free(struct ahead *a)
{
    if (a == NULL)
        return;
    ahead_close(a);
    manifest_cursor_free(a->cursor);
    free(a);
}

static int open_next(struct ahead *a, struct error *e)
{
    struct entry entry;
    int result;

    do
        result = manifest_next(a->cursor, &entry, e);
    while (result == 1 && entry.bytes == 0);
    if (result <= 0)
        return result < 0 ? -1
                          : error_set(e, ERROR_PROTOCOL, "the stream of the tree is too short");
    int file = source_open_file(a->sources, &entry, e);
    a->next = entry.begin + entry.bytes;
    if (file < 0)
        return file == CHANGING_LEFT_OUT ? 0 : -1;
    (void)posix_fadvise(file, 0, LOADED_MOST, POSIX_FADV_WILLNEED);
    unsigned at = (a->first + a->count++) % AHEAD_FILES;
    a->open[at].index = entry.index;
    a->open[at].file = file;
    return 0;
}

/* Opens files from the one that begins at `offset` of the stream on, up to `limit`, or until AHEAD_FILES are open. Returns
 * 0, or -1 with *e. */
static int ahead_open(struct ahead *a, uint64_t offset, uint64_t limit, struct error *e)
{
    int result = 0;

    if (offset >= limit)
        return 0;
    if (a->count == 0 && (!a->known || a->next != offset)) {
        result = manifest_seek_stream(a->cursor, offset, e);
        a->next = offset;
        a->known = result == 0;
    }
    while (result == 0 && a->count < AHEAD_FILES && a->next < limit)
        result = open_next(a, e);
    return result;
}

/* Takes the file of an entry, which the caller closes; -1 if it is not open. */
static int ahead_take(struct ahead *a, uint64_t index)
{
    if (a->count == 0 || a->open[a->first].index != index)
        return -1;
    int file = a->open[a->first].file;
    a->first = (a->first + 1) % AHEAD_FILES;
    a->count--;
    return file;
}

/* --- the stream --- */

#define SPOTS_MOST 8u /* that are kept while nobody reads there */
#define AHEAD_LEAST                                                                                \
    (1024u * 1024) /* bytes of a file from which on the kernel is told to read ahead */

/* A place where bytes were read. */
struct spot {
    struct spot *next;
    struct manifest_cursor *cursor;
    struct entry entry; /* the file at this place, if has_entry */
    struct file_data data;
    bool has_entry;
    int file; /* -1: not open */
    struct ahead *ahead;
    uint64_t limit; /* what is read ends here */
    uint64_t offset;
};

struct stream {
    const struct manifest *manifest;
    const struct sources *sources;
    pthread_mutex_t lock;
    struct spot *spot; /* those that nobody uses, the last one that was used first */
    unsigned spots;
};

struct stream *stream_new(const struct manifest *manifest, const struct sources *sources)
{
    struct stream *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    s->manifest = manifest;
    s->sources = sources;
    (void)pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void close_file(struct spot *spot)
{
    file_close(&spot->file);
}

static void free_spot(struct spot *spot)
{
    close_file(spot);
    manifest_cursor_free(spot->cursor);
    ahead_free(spot->ahead);
    free(spot);
}

void stream_free(struct stream *s)
{
    if (s == NULL)
        return;
    while (s->spot != NULL) {
        struct spot *next = s->spot->next;
        free_spot(s->spot);
        s->spot = next;
    }
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}

static struct spot *new_spot(const struct stream *s)
{
    struct spot *spot = calloc(1, sizeof *spot);

    if (spot == NULL)
        return NULL;
    spot->file = -1;
    spot->cursor = manifest_cursor_new(s->manifest);
    spot->ahead = ahead_new(s->manifest, s->sources);
    if (spot->cursor != NULL && spot->ahead != NULL)
        return spot;
    free_spot(spot);
    return NULL;
}

/* Takes the spot at this place; otherwise one that was not used for long, or a new one. NULL: no memory. */
static struct spot *take_spot(struct stream *s, uint64_t offset)
{
    struct spot **at = &s->spot, *spot;

    (void)pthread_mutex_lock(&s->lock);
    while (*at != NULL && (*at)->offset != offset && (*at)->next != NULL)
        at = &(*at)->next;
    spot = *at;
    if (spot != NULL && spot->offset != offset && s->spots < SPOTS_MOST)
        spot = NULL;
    if (spot != NULL) {
        *at = spot->next;
        s->spots--;
    }
    (void)pthread_mutex_unlock(&s->lock);
    return spot != NULL ? spot : new_spot(s);
}

static void give_spot(struct stream *s, struct spot *spot)
{
    bool kept;

    (void)pthread_mutex_lock(&s->lock);
    kept = s->spots < SPOTS_MOST;
    if (kept) {
        spot->next = s->spot;
        s->spot = spot;
        s->spots++;
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (!kept)
        free_spot(spot);
}

/* Whether an entry is the file of a byte of the stream. */
static bool has_byte(const struct entry *entry, uint64_t offset)
{
    return entry->kind == ENTRY_FILE && offset >= entry->begin &&
           offset - entry->begin < entry->bytes;
}

/* Finds the file of a byte. Most often it is the next one. */
static int find_file(struct spot *spot, uint64_t offset, struct error *e)
{
    int result = 1;

    if (spot->has_entry && has_byte(&spot->entry, offset))
        return 0;
    close_file(spot);
    bool follows = spot->has_entry && offset == spot->entry.begin + spot->entry.bytes;
    spot->has_entry = false;
    if (!follows && manifest_seek_stream(spot->cursor, offset, e) != 0)
        return -1;
    do
        result = manifest_next(spot->cursor, &spot->entry, e);
    while (result == 1 && !has_byte(&spot->entry, offset));
    if (result <= 0)
        return result < 0
                   ? -1
                   : error_set(e, ERROR_PROTOCOL, "offset %llu is beyond the end of the tree",
                               (unsigned long long)offset);
    spot->has_entry = true;
    spot->data = file_data_of(&spot->entry);
    return 0;
}

static int open_file(const struct stream *s, struct spot *spot, struct error *e)
{
    if (spot->file >= 0)
        return 0;
    spot->file = ahead_take(spot->ahead, spot->entry.index);
    if (spot->file < 0) {
        int file = source_open_file(s->sources, &spot->entry, e);
        if (file < 0)
            return file;
        spot->file = file;
    }
    if (spot->entry.bytes >= AHEAD_LEAST)
        (void)posix_fadvise(spot->file, 0, 0, POSIX_FADV_SEQUENTIAL);
    return 0;
}

/* Reads from one file as many bytes as it has. Zeros stand for those of a file that is left out. */
static int read_part(const struct stream *s, struct spot *spot, uint8_t *bytes, size_t length,
                     size_t *done, struct error *e)
{
    if (find_file(spot, spot->offset, e) != 0)
        return -1;
    uint64_t place = spot->offset - spot->entry.begin, left = spot->entry.bytes - place;
    int result = open_file(s, spot, e);
    if (result == -1 ||
        ahead_open(spot->ahead, spot->entry.begin + spot->entry.bytes, spot->limit, e) != 0)
        return -1;
    *done = left < length ? (size_t)left : length;
    if (result == 0 && file_data_read(spot->file, &spot->data, place, bytes, *done) != 0)
        result = source_failed(s->sources, &spot->entry, e);
    if (result == -1)
        return -1;
    if (result == CHANGING_LEFT_OUT)
        memset(bytes, 0, *done);
    else
        changing_note(s->sources->changing, spot->entry.begin + place, bytes, *done);
    if (*done == left || result == CHANGING_LEFT_OUT)
        close_file(spot);
    spot->offset += *done;
    return 0;
}

int stream_read(struct stream *s, uint64_t offset, uint8_t *bytes, size_t length, struct error *e)
{
    struct spot *spot = take_spot(s, offset);
    size_t done;
    int result = 0;

    if (spot == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory to read a tree");
    spot->offset = offset;
    spot->limit = offset + length;
    for (size_t at = 0; at < length && result == 0; at += done)
        result = read_part(s, spot, bytes + at, length - at, &done, e);
    if (result == 0)
        give_spot(s, spot);
    else
        free_spot(spot);
    return result;
}
