#include "daemon/torusd/tree/writer_record.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/torusd/tree/compare_contents.h"
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

bool writer_stopped(const struct tree_progress *progress, struct error *e)
{
    if (progress == NULL || !atomic_load(&progress->stop))
        return false;
    (void)error_set(e, ERROR_CANCELLED, "the copy was stopped");
    return true;
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
    (void)pthread_mutex_lock(&w->placing_lock);
    int result = placing_one(&w->placing, entry, e);
    (void)pthread_mutex_unlock(&w->placing_lock);
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
    if (result == 0 && !w->placing_open && fstat(file, &st) != 0)
        result = -errno;
    if (result < 0)
        return writer_file_failed(w, entry, "completed", -result, e);
    if (w->placing_open)
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
    if (result != 0)
        return -1;
    (void)pthread_mutex_lock(&w->lock);
    arrivals_set_whole(&w->arrivals, entry->index);
    w->has_arrivals = true;
    (void)pthread_mutex_unlock(&w->lock);
    return 0;
}
