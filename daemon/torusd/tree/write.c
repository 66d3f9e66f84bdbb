#include "daemon/torusd/tree/writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/tree/file_data.h"
#include "proto/text.h"

#define SAVE_AFTER 1  /* seconds between records of what has arrived */
#define SYNC_AFTER 60 /* and between those that also count after a crash of the machine */
#define SYNCING "arrived.syncing"

int writer_file_failed(const struct tree_writer *w, const struct entry *entry, const char *done,
                       int error, struct error *e)
{
    char whole[2 * PATH_MAX], shown[200];

    (void)snprintf(whole, sizeof whole, "%s%s%s", w->staging.path,
                   entry->path_length > 0 ? "/" : "", entry->path);
    return error_set(e, error == ENOMEM ? ERROR_MEMORY : ERROR_IO,
                     "the new file for %s cannot be %s: %s",
                     text_printable(shown, sizeof shown, whole), done, strerror(error));
}

void writer_note_first(struct tree_writer *w, const char *path)
{
    char whole[2 * PATH_MAX];

    if (w->report.first[0] != '\0')
        return;
    (void)snprintf(whole, sizeof whole, "%s%s%s", w->staging.path, path[0] != '\0' ? "/" : "",
                   path);
    (void)text_printable(w->report.first, sizeof w->report.first, whole);
}

/* --- the record --- */

static bool is_due(struct timespec *last, const struct timespec *now, time_t after)
{
    if (last->tv_sec == 0) /* the first time counts from the first byte on */
        *last = *now;
    if (now->tv_sec - last->tv_sec < after)
        return false;
    *last = *now;
    return true;
}

int writer_save(struct tree_writer *w, bool now, struct error *e)
{
    const struct staging *s = &w->staging;
    struct timespec time;
    int result = 0;

    if (w->skip_changing)
        return 0;
    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    (void)pthread_mutex_lock(&w->lock);
    bool save = is_due(&w->saved, &time, SAVE_AFTER) || now,
         sync = is_due(&w->synced, &time, SYNC_AFTER);
    if (save)
        result = arrivals_save(&w->arrivals, s, STAGING_ARRIVED, w->manifest.digest, e);
    if (sync && result == 0)
        result = arrivals_save(&w->arrivals, s, SYNCING, w->manifest.digest, e);
    (void)pthread_mutex_unlock(&w->lock);
    if (sync && result == 0 &&
        (syncfs(s->folder) != 0 || renameat(s->folder, SYNCING, s->folder, ARRIVALS_SYNCED) != 0))
        result = staging_failed(s, "synced", errno, e);
    return result;
}

/* --- files that are complete --- */

static int place_now(struct tree_writer *w, const struct entry *entry, int file, struct error *e)
{
    /* otherwise a crash of the machine could leave a file with its name and without its data */
    if (fdatasync(file) != 0)
        return writer_file_failed(w, entry, "synced", errno, e);
    (void)pthread_mutex_lock(&w->install_lock);
    int result = install_one(&w->install, entry, e);
    (void)pthread_mutex_unlock(&w->install_lock);
    return result;
}

static int complete(struct tree_writer *w, const struct entry *entry, int file, struct error *e)
{
    struct metadata_place place = {.file = file, .fresh = true};
    struct stat st;

    if (entry->has_digest) {
        int equal = compare_contents_of(file, entry, NULL);
        if (equal < 0)
            return writer_file_failed(w, entry, "read", -equal, e);
        if (equal == 0) {
            char shown[200];
            return error_set(e, ERROR_DAMAGED,
                             "the new file for %s differs from its source: copy again",
                             text_printable(shown, sizeof shown, entry->path));
        }
    }
    int result = fstat(file, &st) == 0 ? 0 : -errno;
    if (result == 0)
        result = metadata_set(&w->metadata, &place, &st, entry);
    if (result == 0 && !w->install_open && fstat(file, &st) != 0)
        result = -errno;
    if (result < 0)
        return writer_file_failed(w, entry, "completed", -result, e);
    if (w->install_open)
        return place_now(w, entry, file, e);
    arrivals_stamp_whole(&w->arrivals, entry->index, &st);
    return 0;
}

int writer_complete_file(struct tree_writer *w, const struct entry *entry, int file,
                         struct error *e)
{
    int result = complete(w, entry, file, e);

    if (close(file) != 0 && result == 0)
        result = writer_file_failed(w, entry, "written", errno, e);
    (void)pthread_mutex_lock(&w->lock);
    struct partial *p = arrivals_find(&w->arrivals, entry->index);
    if (p != NULL)
        arrivals_remove(&w->arrivals, p);
    if (result == 0) {
        arrivals_set_whole(&w->arrivals, entry->index);
        w->has_arrivals = true;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return result == 0 ? 0 : -1;
}

/* Bytes of the stream become new files: write(), by several threads at once. */

/* --- files that come in parts --- */

/* Takes the partial file of an entry, and opens it. Returns NULL with *e. To be called with the lock. */
static struct partial *use_partial(struct tree_writer *w, const struct entry *entry,
                                   struct error *e)
{
    struct partial *p = arrivals_find(&w->arrivals, entry->index);
    const bool begins = p == NULL;

    if (begins)
        p = arrivals_add(&w->arrivals, entry->index);
    if (p == NULL)
        return (void)error_set(e, ERROR_MEMORY, "out of memory"), NULL;
    if (p->file < 0) {
        /* what no record names is not used: it could stay in holes */
        int file = staging_open_file(&w->staging, entry->index, begins);
        if (file >= 0 && ftruncate(file, (off_t)entry->size) != 0) {
            int error = errno;
            (void)close(file);
            file = -error;
        }
        if (file < 0)
            return (void)writer_file_failed(w, entry, "made", -file, e), NULL;
        p->file = file;
        w->arrivals.open++;
    }
    p->users++;
    p->used = ++w->arrivals.clock;
    arrivals_close_some(&w->arrivals);
    return p;
}

/* Notes that bytes are there. Returns the descriptor if the file is complete now, which the caller then has alone: until
 * writer_complete_file() ends, the partial file stays on record without it, so that nobody empties the file. -1: it
 * is not complete; -2 with *e. To be called with the lock. */
static int leave_partial(struct tree_writer *w, const struct entry *entry, struct partial *p,
                         struct arrived_piece piece, bool written, struct error *e)
{
    p->users--;
    if (!written)
        return -2;
    w->has_arrivals = true;
    arrivals_note_piece(p, piece, entry->bytes);
    if (intervals_add(&p->spans, piece.begin, piece.end) != 0)
        return (void)error_set(e, ERROR_MEMORY, "out of memory"), -2;
    if (p->users > 0 || !intervals_contain(&p->spans, 0, entry->bytes))
        return -1;
    return arrivals_take_file(&w->arrivals, p);
}

static int write_part(struct tree_writer *w, const struct entry *entry, uint64_t begin,
                      const uint8_t *bytes, size_t length, struct error *e)
{
    struct file_data data = file_data_of(entry);
    const struct arrived_piece piece = {begin, begin + length, digest_bytes(bytes, length, 0)};

    (void)pthread_mutex_lock(&w->lock);
    struct partial *p = use_partial(w, entry, e);
    int file = p != NULL ? p->file : -1;
    (void)pthread_mutex_unlock(&w->lock);
    if (p == NULL)
        return -1;
    int result = copy_data_write(file, &data, begin, bytes, length);
    if (result < 0)
        (void)writer_file_failed(w, entry, "written", -result, e);
    (void)pthread_mutex_lock(&w->lock);
    file = leave_partial(w, entry, p, piece, result == 0, e);
    (void)pthread_mutex_unlock(&w->lock);
    return file >= 0 ? writer_complete_file(w, entry, file, e) : file == -1 ? 0 : -1;
}

static int write_whole(struct tree_writer *w, const struct entry *entry, const uint8_t *bytes,
                       struct error *e)
{
    struct file_data data = file_data_of(entry);
    int file = staging_make_file(&w->staging, entry->index, entry->mode & 0777u);

    if (file < 0)
        return writer_file_failed(w, entry, "made", -file, e);
    int result = copy_data_write(file, &data, 0, bytes, (size_t)entry->bytes);
    if (result == 0 && entry->extent != NULL && ftruncate(file, (off_t)entry->size) != 0)
        result = -errno;
    if (result == 0)
        return writer_complete_file(w, entry, file, e);
    (void)close(file);
    return writer_file_failed(w, entry, "written", -result, e);
}

/* Writes what a range of the stream has of a file, unless it is here: other nodes may lack it, so it comes all the
 * same. */
static int write_file(struct tree_writer *w, const struct entry *entry, uint64_t offset,
                      const uint8_t *bytes, size_t length, struct error *e)
{
    uint64_t begin = offset > entry->begin ? offset - entry->begin : 0;
    uint64_t end = offset + length - entry->begin;

    if (state_of(w->state, entry->index) != STATE_NEW)
        return 0;
    if (end > entry->bytes)
        end = entry->bytes;
    (void)pthread_mutex_lock(&w->lock);
    const struct partial *partial = arrivals_find(&w->arrivals, entry->index);
    const bool here = arrivals_whole(&w->arrivals, entry->index) ||
                      (partial != NULL && intervals_contain(&partial->spans, begin, end));
    (void)pthread_mutex_unlock(&w->lock);
    if (here)
        return 0;
    const uint8_t *from = bytes + (entry->begin + begin - offset);
    if (begin == 0 && end == entry->bytes && partial == NULL)
        return write_whole(w, entry, from, e);
    return write_part(w, entry, begin, from, (size_t)(end - begin), e);
}

/* --- ranges of the stream --- */

/* Takes a cursor that has read up to `offset`, or any one. Returns NULL with *e. */
static struct manifest_cursor *take_cursor(struct tree_writer *w, uint64_t offset, bool *there,
                                           struct error *e)
{
    struct writer_cursor found = {0};
    int best = -1;

    (void)pthread_mutex_lock(&w->lock);
    for (int i = 0; i < (int)WRITER_CURSORS; i++)
        if (w->cursor[i].cursor != NULL && (best < 0 || w->cursor[i].next == offset))
            best = i;
    if (best >= 0) {
        found = w->cursor[best];
        w->cursor[best].cursor = NULL;
    }
    (void)pthread_mutex_unlock(&w->lock);
    *there = found.cursor != NULL && found.next == offset;
    if (found.cursor == NULL)
        found.cursor = manifest_cursor_new(&w->manifest);
    if (found.cursor == NULL)
        (void)error_set(e, ERROR_MEMORY, "out of memory");
    return found.cursor;
}

static void give_cursor(struct tree_writer *w, struct manifest_cursor *cursor, uint64_t next)
{
    (void)pthread_mutex_lock(&w->lock);
    for (unsigned i = 0; i < WRITER_CURSORS && cursor != NULL; i++)
        if (w->cursor[i].cursor == NULL) {
            w->cursor[i] = (struct writer_cursor){cursor, next};
            cursor = NULL;
        }
    (void)pthread_mutex_unlock(&w->lock);
    manifest_cursor_free(cursor);
}

int writer_write(struct tree_writer *w, uint64_t offset, const uint8_t *bytes, size_t length,
                 struct error *e)
{
    uint64_t end = offset + length, next = UINT64_MAX;
    struct entry entry;
    bool there;

    if (w->state == NULL || w->look_only || offset > w->manifest.stream ||
        length > w->manifest.stream - offset)
        return error_set(e, ERROR_PROTOCOL, "bytes arrived that belong to no file");
    if (length == 0)
        return 0;
    struct manifest_cursor *cursor = take_cursor(w, offset, &there, e);
    if (cursor == NULL)
        return -1;
    int result = there ? 0 : manifest_seek_stream(cursor, offset, e);
    while (result == 0) {
        result = manifest_next(cursor, &entry, e);
        if (result != 1)
            break;
        result = 0;
        if (entry.kind != ENTRY_FILE || entry.bytes == 0)
            continue;
        uint64_t file_end = entry.begin + entry.bytes;
        result = write_file(w, &entry, offset, bytes, length, e);
        if (file_end == end)
            next = end;
        if (file_end >= end)
            break;
    }
    give_cursor(w, cursor, next);
    return result != 0 ? -1 : writer_save(w, false, e);
}
