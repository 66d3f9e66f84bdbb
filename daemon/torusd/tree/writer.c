/* The end of a copy: everything has arrived, and is put in place. */
#include "daemon/torusd/tree/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/tree/staging.h"
#include "daemon/torusd/tree/tree_files.h"
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

struct leaving {
    struct tree_writer *w;
    const uint64_t *index;
    uint32_t count;
};

/* Second names are treated like the first one. */
static int leave_hardlink(void *context, const struct entry *entry, struct error *e)
{
    const struct leaving *l = context;

    (void)e;
    if (entry->kind == ENTRY_HARDLINK && is_listed(l->index, l->count, entry->linked) &&
        l->w->state[entry->index] != STATE_SAME)
        (void)leave_entry(l->w, entry->index);
    return 0;
}

static int on_leave(struct tree_writer *w, const uint64_t *index, uint32_t count, struct error *e)
{
    struct leaving leaving = {w, index, count};

    if (w->state == NULL)
        return error_set(e, ERROR_PROTOCOL, "the trees have not been compared");
    for (uint32_t i = 0; i < count; i++) {
        const int result = index[i] < w->manifest.entries ? leave_entry(w, index[i]) : 0;
        if (result < 0)
            return staging_failed(&w->staging, "removed", -result, e);
    }
    return count > 0 && w->manifest.hardlinks > 0
               ? manifest_each(&w->manifest, leave_hardlink, &leaving, e)
               : 0;
}

/* --- everything is here --- */

/* Files without data are made only now; those that pieces of older versions make up are complete only now. */
static int complete_now(struct tree_writer *w, const struct entry *entry, struct error *e)
{
    int file = staging_open_file(&w->staging, entry->index, entry->bytes == 0);

    if (file < 0)
        return writer_file_failed(w, entry, "made", -file, e);
    if (entry->size > 0 && ftruncate(file, (off_t)entry->size) != 0) {
        int error = errno;
        (void)close(file);
        return writer_file_failed(w, entry, "made", error, e);
    }
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
    uint64_t here = p != NULL ? p->spans.bytes : 0;
    if (here >= entry->bytes)
        return complete_now(w, entry, e);
    return error_set(e, ERROR_DAMAGED, "%llu of %llu bytes of %s have not arrived",
                     (unsigned long long)(entry->bytes - here), (unsigned long long)entry->bytes,
                     text_printable(shown, sizeof shown, entry->path));
}

struct checking {
    struct tree_writer *w;
    const struct tree_progress *progress;
};

static int check_entry(void *context, const struct entry *entry, struct error *e)
{
    const struct checking *c = context;

    return tree_stopped(c->progress, e) ||
                   (entry->kind == ENTRY_FILE && check_file(c->w, entry, e) != 0)
               ? -1
               : 0;
}

/* --- putting in place --- */

static int place_all(struct tree_writer *w, struct error *e)
{
    struct install *p = &w->install;
    uint64_t removed = w->install_open ? p->removed : 0; /* as files came */

    if (w->install_open)
        install_free(p);
    *p = (struct install){.staging = &w->staging,
                          .manifest = &w->manifest,
                          .rules = &w->rules,
                          .patterns = w->patterns,
                          .metadata = &w->metadata,
                          .state = w->state};
    w->install_open = false;
    if (install_run(p, e) != 0)
        return -1;
    w->report.removed = removed + p->removed;
    return 0;
}

/* Returns the time that the target gets if the staging is inside it, and changes its time. */
static struct timespec time_of_target(const struct tree_writer *w)
{
    struct timespec modified = {.tv_nsec = UTIME_OMIT};
    struct manifest_cursor *cursor = manifest_cursor_new(&w->manifest);
    struct entry entry;
    struct error e;

    if (strcmp(w->staging.target, ".") == 0 && cursor != NULL &&
        manifest_next(cursor, &entry, &e) == 1 && entry.path_length == 0)
        modified = entry.modified;
    manifest_cursor_free(cursor);
    return modified;
}

static void close_files(struct tree_writer *w)
{
    stored_close(&w->stored);
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++) {
        file_close(&w->document[i]);
    }
    arrivals_free(&w->arrivals);
}

/* First closes all files of the staging: NFS and FUSE keep a file that is removed while it is open under another name
 * in its folder, which can then not be removed. */
static void remove_staging(struct tree_writer *w)
{
    struct error e;

    close_files(w);
    if (staging_remove(&w->staging, &e) == 0)
        staging_forget(&w->staging, &w->files->copies);
    else
        log_warning("copy %s: %s", w->id, e.text);
}

/* Everything is in place: a failure from here on leaves only a staging that the next start removes. */
static void clean_up(struct tree_writer *w)
{
    const struct timespec modified = time_of_target(w), times[2] = {modified, modified};

    w->placed = true;
    remove_staging(w);
    if (modified.tv_nsec != UTIME_OMIT)
        (void)utimensat(w->staging.above, ".", times, 0);
}

static int on_finish(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    const struct tree_report *r = &w->report;

    if (w->state == NULL)
        return error_set(e, ERROR_PROTOCOL, "the trees have not been compared");
    if (w->look_only)
        return 0;
    if (manifest_each(&w->manifest, check_entry, &(struct checking){w, progress}, e) != 0)
        return -1;
    if (r->added > 0 || r->changed > 0 || r->removed > 0) {
        if (writer_save(w, true, e) != 0 || staging_sync(&w->staging, e) != 0 ||
            journal_add_copy(&w->files->copies, w->staging.path, true, e) != 0 ||
            tree_stopped(progress, e) || /* syncing may have taken long */
            complete_write(&w->staging, &w->rules, e) != 0 || place_all(w, e) != 0)
            return -1;
    }
    clean_up(w);
    if (w->install.changed_since == 0)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "somebody has changed %llu %s of the target during the copy, first %s: copy "
                     "again",
                     (unsigned long long)w->install.changed_since,
                     text_plural(w->install.changed_since, "file", "files"),
                     w->install.first_changed);
}

static void on_close(struct tree_writer *w);

/* --- opening --- */

/* A copy that is complete, but not in place, is put in place first. If that is impossible, it becomes an interrupted
 * one, of which the new copy takes what it can use. */
static int finish_earlier(struct tree_writer *w, struct error *e)
{
    struct staging *s = &w->staging;
    uint64_t changed;
    char first[256];
    const int result = install_resume(s, &changed, first, e);

    if (result == 0)
        return 0;
    if (result < 0)
        log_warning("copy %s: an earlier copy to %s, which is complete, cannot be put in place: %s",
                    w->id, s->path, e->text);
    return complete_withdraw(s, e);
}

static int open_staging(struct tree_writer *w, struct error *e)
{
    struct staging *s = &w->staging;

    s->id = w->id;
    if (journal_add_copy(&w->files->copies, s->path, false, e) != 0 ||
        staging_open(s, true, w->files->patience_ms, e) != 0 ||
        journal_add_copy(&w->files->copies, s->path, false, e) != 0)
        return -1;
    if (s->resumed && (staging_check(s, e) != 0 || finish_earlier(w, e) != 0))
        return -1;
    /* a folder that the earlier copy was building is no beginning of one of this copy */
    return staging_clear(s, STAGING_TREE, e) == 0 ? staging_clear(s, STAGING_OLD_FILES, e) : -1;
}

/* A data root may have much that has nothing to do with a copy. */
static int check_root(const struct tree_writer *w, struct error *e)
{
    if (!w->staging.is_root || w->rules.into || !w->rules.delete || w->delete_root || w->look_only)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the target %s is a data root, and --delete would remove everything else in "
                     "it: name a folder in it, or say --delete-root, too",
                     w->staging.printable);
}

static int open_target(struct tree_writer *w, const struct roots *roots, const char *path,
                       struct error *e)
{
    struct made_folders *made = w->look_only ? NULL : &w->files->made;

    if (staging_find(&w->staging, roots, atomic_load(&w->files->output_mode), path, made, e) != 0 ||
        check_root(w, e) != 0)
        return -1;
    return w->look_only ? 0 : open_staging(w, e);
}

static int copy_options(struct tree_writer *w, const struct tree_write_options *options,
                        struct error *e)
{
    (void)snprintf(w->id, sizeof w->id, "%s", options->id != NULL ? options->id : "");
    w->rules.into = options->into;
    w->rules.delete = options->delete;
    w->rules.as_it_comes = options->as_it_comes;
    w->checksum = options->checksum;
    w->look_only = options->look_only;
    w->sizes = options->sizes && options->look_only;
    w->delete_root = options->delete_root;
    w->delete_most = options->delete_most;
    w->skip_changing = options->skip_changing;
    w->rules.pattern = calloc(options->patterns + 1, sizeof *w->rules.pattern);
    for (uint32_t i = 0; i < options->patterns && w->rules.pattern != NULL; i++) {
        w->rules.pattern[i] = strdup(options->pattern[i]);
        if (w->rules.pattern[i] == NULL)
            return error_set(e, ERROR_MEMORY, "out of memory");
        w->rules.patterns++;
    }
    if (w->rules.pattern == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    w->patterns = patterns_new(options->pattern, options->patterns, e);
    return w->patterns != NULL ? 0 : -1;
}

static int on_open(void *context, const struct tree_write_options *options,
                   struct tree_writer **out, struct error *e)
{
    struct tree_writer *w = calloc(1, sizeof *w);

    if (w == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy to %s", options->path);
    w->files = context;
    w->staging.folder = w->staging.above = w->stored.file = -1;
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        w->document[i] = -1;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_mutex_init(&w->install_lock, NULL);
    metadata_rules_init(&w->metadata);
    const struct roots *roots = tree_files_enter(w->files);
    if (copy_options(w, options, e) != 0 || open_target(w, roots, options->path, e) != 0) {
        on_close(w);
        return -1;
    }
    stored_open(&w->stored, w->staging.above, w->staging.folder);
    w->metadata.stored = &w->stored;
    *out = w;
    return 0;
}

/* --- documents --- */

/* Only a manifest in a staging is kept for later. */
static int open_document(struct tree_writer *w, enum tree_document which, struct error *e)
{
    if (which == TREE_DIGESTS || w->look_only) {
        w->document[which] = tree_files_temporary(w->files, e);
        return w->document[which] >= 0 ? 0 : -1;
    }
    w->document[which] = openat(w->staging.folder, STAGING_MANIFEST_NEW,
                                O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    return w->document[which] >= 0 ? 0 : staging_failed(&w->staging, "described", errno, e);
}

static int on_write_document(struct tree_writer *w, enum tree_document which, const uint8_t *bytes,
                             size_t length, struct error *e)
{
    uint64_t *size = &w->document_size[which];

    if (w->document[which] < 0 && open_document(w, which, e) != 0)
        return -1;
    if (length > TREE_DOCUMENT_MOST - *size)
        return error_set(e, ERROR_PROTOCOL, "the description of the trees is too long");
    if (file_write(w->document[which], bytes, length, *size) != 0)
        return staging_failed(&w->staging, "described", errno, e);
    *size += length;
    return 0;
}

/* --- the end --- */

static void on_report(const struct tree_writer *w, struct tree_report *report)
{
    *report = w->report;
    report->not_owned = atomic_load(&w->metadata.not_owned);
    report->not_attributed = atomic_load(&w->metadata.not_attributed);
}

static int on_check_places(struct tree_writer *w, const uint64_t *place, uint32_t places,
                           struct error *e)
{
    const struct staging *s = &w->staging;

    switch (location_ids_compare(place, places, s->path)) {
    case PLACE_INSIDE:
        return error_set(e, ERROR_REFUSED,
                         "the target %s is in the source: these nodes share a file system. Copy to "
                         "a folder beside the source, or leave this node out (--nodes)",
                         s->printable);
    case PLACE_ABOVE:
        if (w->rules.into || !w->rules.delete)
            return 0;
        return error_set(
            e, ERROR_REFUSED,
            "the source is in the target %s, and --delete would remove it: these nodes "
            "share a file system. Name another target, or leave this node out "
            "(--nodes)",
            s->printable);
    default:
        return 0;
    }
}

static size_t on_going(const struct tree_writer *w, const uint8_t **paths)
{
    *paths = w->going.bytes;
    return w->going.length;
}

static uint64_t on_granularity(const struct tree_writer *w)
{
    return w->stored.granularity;
}

/* Leaves the disk in the state in which the next copy is to find it. */
static void close_staging(struct tree_writer *w)
{
    struct staging *s = &w->staging;
    const bool as_found =
        !w->placed && !w->inherited && s->resumed; /* as the earlier copy left it */
    const bool stays = !w->placed && w->has_arrivals && !w->skip_changing;
    struct error e;

    if (s->folder >= 0 && !w->look_only && !as_found) {
        if (!stays)
            remove_staging(w);
        else if (writer_save(w, true, &e) != 0)
            log_warning("copy %s: %s", w->id, e.text);
    }
    if (w->placed)
        staging_leave(s, true);
    else if (s->use != NULL && s->folder < 0)
        staging_remove_made(s, 0);
    staging_close(s);
}

static void on_close(struct tree_writer *w)
{
    if (w->install_open)
        install_free(&w->install);
    close_staging(w);
    close_files(w);
    for (unsigned i = 0; i < WRITER_CURSORS; i++)
        manifest_cursor_free(w->cursor[i].cursor);
    intervals_free(&w->missing);
    patterns_free(w->patterns);
    complete_free(&w->rules);
    free(w->wanted);
    free(w->going.bytes);
    free(w->state);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_mutex_destroy(&w->install_lock);
    tree_files_leave(w->files);
    free(w);
}

void tree_writer_add(struct tree_store *store)
{
    store->write_open = on_open;
    store->write_document = on_write_document;
    store->compare = writer_compare;
    store->missing = writer_missing;
    store->write = writer_write;
    store->leave = on_leave;
    store->finish = on_finish;
    store->report = on_report;
    store->check_places = on_check_places;
    store->going = on_going;
    store->granularity = on_granularity;
    store->write_close = on_close;
}
