#include "daemon/torusd/tree/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/tree/file_bytes.h"
#include "daemon/torusd/tree/listing.h"
#include "daemon/torusd/tree/place_ids.h"
#include "daemon/torusd/tree/writer_record.h"
#include "proto/text.h"

#define TRIES 10u /* to open a staging */

/* --- opening --- */

/* A copy that is complete, but not in place, is put in place first. If that is impossible, it becomes an interrupted one,
 * of which the new copy takes what it can use. */
static int finish_earlier(struct tree_writer *w, struct error *e)
{
    struct staging *s = &w->staging;
    struct complete rules;
    uint64_t changed;
    char first[256];
    int found = complete_read(s, &rules, e);

    if (found <= 0)
        return found;
    int result = writer_place_staging(s, &rules, &changed, first, e);
    complete_free(&rules);
    if (result == 0 && syncfs(s->folder) == 0)
        return complete_withdraw(s, e);
    log_warning("copy %s: an earlier copy to %s, which is complete, cannot be put in place: %s",
                w->id, s->path, e->text);
    return complete_withdraw(s, e);
}

static int open_staging(struct tree_writer *w, struct error *e)
{
    struct staging *s = &w->staging;

    s->id = w->id;
    if (listing_add(w->files->state_folder, s->path, e) != 0 ||
        staging_open(s, true, w->files->patience_ms, e) != 0 ||
        listing_add(w->files->state_folder, s->path, e) != 0)
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

/* Finds the target and opens its staging: again, if another copy has removed the folder above it meanwhile. */
static int open_target(struct tree_writer *w, const struct roots *roots, const char *path,
                       struct error *e)
{
    struct staging *s = &w->staging;
    const mode_t mode = atomic_load(&w->files->output_mode);
    struct made_folders *made = w->look_only ? NULL : &w->files->made;
    struct made_use *before = NULL; /* folders that this copy has made remain its own */
    int result;

    for (unsigned tries = 0;; tries++) {
        result = staging_find(s, roots, mode, path, made, e);
        made_folders_leave(made, before, false);
        if (result != 0 || check_root(w, e) != 0)
            return -1;
        if (w->look_only || open_staging(w, e) == 0)
            return 0;
        if (tries == TRIES || !staging_place_is_gone(s))
            return -1;
        before = s->use;
        s->use = NULL;
        staging_close(s);
    }
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

int writer_open(void *context, const struct tree_write_options *options, struct tree_writer **out,
                struct error *e)
{
    struct tree_writer *w = calloc(1, sizeof *w);

    if (w == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a copy to %s", options->path);
    w->files = context;
    w->staging.folder = w->staging.above = w->stored.file = -1;
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        w->document[i] = -1;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_mutex_init(&w->placing_lock, NULL);
    metadata_rules_init(&w->metadata);
    const struct roots *roots = tree_files_enter(w->files);
    if (copy_options(w, options, e) != 0 || open_target(w, roots, options->path, e) != 0) {
        writer_close(w);
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

int writer_write_document(struct tree_writer *w, enum tree_document which, const uint8_t *bytes,
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

void writer_report(const struct tree_writer *w, struct tree_report *report)
{
    *report = w->report;
    report->not_owned = atomic_load(&w->metadata.not_owned);
    report->not_attributed = atomic_load(&w->metadata.not_attributed);
}

int writer_check_places(struct tree_writer *w, const uint64_t *place, uint32_t places,
                        struct error *e)
{
    const struct staging *s = &w->staging;

    switch (place_ids_compare(place, places, s->path)) {
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

size_t writer_going(const struct tree_writer *w, const uint8_t **paths)
{
    *paths = w->going.bytes;
    return w->going.length;
}

uint64_t writer_granularity(const struct tree_writer *w)
{
    return w->stored.granularity;
}

/* Leaves the disk as it is to be found later. */
static void close_staging(struct tree_writer *w)
{
    struct staging *s = &w->staging;
    struct error e;
    int result = 0;

    if (s->folder >= 0 && !w->look_only) {
        if (!w->placed && !w->inherited && s->resumed)
            result = 0; /* as the earlier copy has left it */
        else if (!w->placed && w->has_arrivals && !w->skip_changing)
            result = writer_save(w, true, &e);
        else if ((result = staging_remove(s, &e)) == 0)
            listing_remove(w->files->state_folder, s);
        if (result != 0)
            log_warning("copy %s: %s", w->id, e.text);
    }
    if (w->placed)
        staging_keep_made(s);
    else if (s->above >= 0 && s->folder < 0)
        staging_remove_made(s);
    staging_close(s);
}

void writer_close(struct tree_writer *w)
{
    if (w->placing_open)
        placing_free(&w->placing);
    close_staging(w);
    stored_close(&w->stored);
    for (unsigned i = 0; i < TREE_DOCUMENTS; i++)
        if (w->document[i] >= 0)
            (void)close(w->document[i]);
    for (unsigned i = 0; i < WRITER_CURSORS; i++)
        manifest_cursor_free(w->cursor[i].cursor);
    arrivals_free(&w->arrivals);
    spans_free(&w->missing);
    patterns_free(w->patterns);
    complete_free(&w->rules);
    free(w->wanted);
    free(w->going.bytes);
    free(w->state);
    (void)pthread_mutex_destroy(&w->lock);
    (void)pthread_mutex_destroy(&w->placing_lock);
    tree_files_leave(w->files);
    free(w);
}

void tree_writer_add(struct tree_store *store)
{
    store->write_open = writer_open;
    store->write_document = writer_write_document;
    store->compare = writer_compare;
    store->missing = writer_missing;
    store->write = writer_write;
    store->leave = writer_leave;
    store->finish = writer_finish;
    store->report = writer_report;
    store->check_places = writer_check_places;
    store->going = writer_going;
    store->granularity = writer_granularity;
    store->write_close = writer_close;
}
