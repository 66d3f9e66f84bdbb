/* The end of a copy: everything is here, and is put in place. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/tree/listing.h"
#include "daemon/torusd/tree/writer_record.h"
#include "proto/text.h"

/* --- files that have changed at the reader --- */

/* An entry stays as it is here: the report does not count it, and what has arrived of it is removed. Returns 0 or
 * -errno. */
static int leave_entry(struct tree_writer *w, uint64_t index)
{
    char name[STAGING_NAME_SIZE];
    const unsigned state = w->state[index];

    if ((state & STATE_ABSENT) != 0)
        w->report.added--;
    else if (state != STATE_SAME)
        w->report.changed--;
    w->state[index] = STATE_SAME;
    return w->look_only || unlinkat(w->staging.folder, staging_file(index, name), 0) == 0 ||
                   errno == ENOENT
               ? 0
               : -errno;
}

static bool is_listed(const uint64_t *index, uint32_t count, uint64_t number)
{
    uint32_t low = 0, high = count;

    while (high - low > 1) {
        const uint32_t middle = low + (high - low) / 2;
        if (index[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return count > 0 && index[low] == number;
}

/* Second names go with the first one. */
static int leave_hardlinks(struct tree_writer *w, const uint64_t *index, uint32_t count,
                           struct error *e)
{
    struct manifest_cursor *cursor = manifest_cursor_new(&w->manifest);
    struct entry entry;
    int result = cursor == NULL ? error_set(e, ERROR_MEMORY, "out of memory") : 1;

    while (result == 1 && (result = manifest_next(cursor, &entry, e)) == 1)
        if (entry.kind == ENTRY_HARDLINK && is_listed(index, count, entry.linked) &&
            w->state[entry.index] != STATE_SAME)
            (void)leave_entry(w, entry.index);
    manifest_cursor_free(cursor);
    return result;
}

int writer_leave(struct tree_writer *w, const uint64_t *index, uint32_t count, struct error *e)
{
    if (w->state == NULL)
        return error_set(e, ERROR_PROTOCOL, "the trees have not been compared");
    for (uint32_t i = 0; i < count; i++) {
        const int result = index[i] < w->manifest.entries ? leave_entry(w, index[i]) : 0;
        if (result < 0)
            return staging_failed(&w->staging, "removed", -result, e);
    }
    return count > 0 && w->manifest.hardlinks > 0 ? leave_hardlinks(w, index, count, e) : 0;
}

/* --- everything is here --- */

/* Files without data are made only now; those that pieces of older versions make up are complete only now. */
static int complete_now(struct tree_writer *w, const struct entry *entry, struct error *e)
{
    struct partial *p = arrivals_find(&w->arrivals, entry->index);
    int file = staging_open_file(&w->staging, entry->index, entry->bytes == 0);

    if (file < 0)
        return writer_file_failed(w, entry, "made", -file, e);
    if (entry->size > 0 && ftruncate(file, (off_t)entry->size) != 0) {
        int error = errno;
        (void)close(file);
        return writer_file_failed(w, entry, "made", error, e);
    }
    if (p != NULL)
        arrivals_remove(&w->arrivals, p);
    return writer_complete_file(w, entry, file, e);
}

static int check_file(struct tree_writer *w, const struct entry *entry, struct error *e)
{
    char name[STAGING_NAME_SIZE], shown[200];

    if (state_of(w->state, entry->index) != STATE_NEW) {
        /* an interrupted copy may have left a part of it; it must not be put in place */
        if (w->staging.resumed &&
            unlinkat(w->staging.folder, staging_file(entry->index, name), 0) != 0 &&
            errno != ENOENT)
            return staging_failed(&w->staging, "removed", errno, e);
        return 0;
    }
    if (arrivals_whole(&w->arrivals, entry->index))
        return arrivals_check_staged(&w->arrivals, &w->staging, entry, e);
    const struct partial *p = arrivals_find(&w->arrivals, entry->index);
    uint64_t here = p != NULL ? spans_bytes(&p->spans) : 0;
    if (here >= entry->bytes)
        return complete_now(w, entry, e);
    return error_set(e, ERROR_DAMAGED, "%llu of %llu bytes of %s have not arrived",
                     (unsigned long long)(entry->bytes - here), (unsigned long long)entry->bytes,
                     text_printable(shown, sizeof shown, entry->path));
}

static int check_all(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    struct manifest_cursor *cursor = manifest_cursor_new(&w->manifest);
    struct entry entry;
    int result = cursor == NULL ? error_set(e, ERROR_MEMORY, "out of memory") : 1;

    while (result == 1) {
        result = manifest_next(cursor, &entry, e);
        if (result == 1 && (writer_stopped(progress, e) ||
                            (entry.kind == ENTRY_FILE && check_file(w, &entry, e) != 0)))
            result = -1;
    }
    manifest_cursor_free(cursor);
    return result;
}

/* --- putting in place --- */

static int sync_all(const struct staging *s, struct error *e)
{
    return syncfs(s->folder) == 0 ? 0 : staging_failed(s, "synced", errno, e);
}

static int place_all(struct tree_writer *w, struct error *e)
{
    struct placing *p = &w->placing;
    uint64_t removed = w->placing_open ? p->removed : 0; /* as files came */

    if (w->placing_open)
        placing_free(p);
    *p = (struct placing){.staging = &w->staging,
                          .manifest = &w->manifest,
                          .rules = &w->rules,
                          .patterns = w->patterns,
                          .metadata = &w->metadata,
                          .state = w->state};
    w->placing_open = false;
    if (placing_run(p, e) != 0)
        return -1;
    w->report.removed = removed + p->removed;
    return 0;
}

/* The staging was inside the target, and has changed its time. */
static void restore_time(struct tree_writer *w)
{
    struct manifest_cursor *cursor = manifest_cursor_new(&w->manifest);
    struct entry entry;
    struct error e;

    if (cursor != NULL && manifest_next(cursor, &entry, &e) == 1 && entry.path_length == 0) {
        const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, entry.modified};
        (void)utimensat(w->staging.above, ".", times, 0);
    }
    manifest_cursor_free(cursor);
}

/* Everything is in place: a failure from here on leaves only a staging that the next start removes. */
static void clean_up(struct tree_writer *w)
{
    struct error e;

    w->placed = true;
    if (staging_remove(&w->staging, &e) == 0)
        listing_remove(w->files->state_folder, &w->staging);
    else
        log_warning("copy %s: %s", w->id, e.text);
    if (strcmp(w->staging.target, ".") == 0)
        restore_time(w);
}

int writer_finish(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    const struct tree_report *r = &w->report;

    if (w->state == NULL)
        return error_set(e, ERROR_PROTOCOL, "the trees have not been compared");
    if (w->look_only)
        return 0;
    if (check_all(w, progress, e) != 0)
        return -1;
    if (r->added > 0 || r->changed > 0 || r->removed > 0) {
        if (writer_save(w, true, e) != 0 || sync_all(&w->staging, e) != 0 ||
            listing_sync(w->files->state_folder, w->staging.path, e) != 0 ||
            writer_stopped(progress, e) || /* syncing may have taken long */
            complete_write(&w->staging, &w->rules, e) != 0 || place_all(w, e) != 0 ||
            sync_all(&w->staging, e) != 0)
            return -1;
    }
    clean_up(w);
    if (w->placing.changed_since == 0)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "somebody has changed %llu %s of the target during the copy, first %s: copy "
                     "again",
                     (unsigned long long)w->placing.changed_since,
                     text_plural(w->placing.changed_since, "file", "files"),
                     w->placing.first_changed);
}
