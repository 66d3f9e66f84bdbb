/* What an interrupted copy has left in the staging is used by the next one to the same target. If the manifest is another
 * one, files are taken that both have, with equal sizes and times. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/tree/writer_record.h"

struct inheriting {
    struct tree_writer *w;
    int file; /* of the old manifest; -1: there is none */
    struct manifest manifest;
    struct arrivals arrivals;
    bool renamed; /* files have their old numbers, and are in STAGING_OLD_FILES */
};

/* --- one file --- */

static bool same_data(const struct entry *old, const struct entry *new)
{
    return old->kind == ENTRY_FILE && new->kind == ENTRY_FILE && old->size == new->size &&
           old->modified.tv_sec == new->modified.tv_sec &&
           old->modified.tv_nsec == new->modified.tv_nsec && old->bytes == new->bytes &&
           old->extents == new->extents && (old->extent == NULL) == (new->extent == NULL) &&
           (old->extent == NULL ||
            memcmp(old->extent, new->extent, old->extents * sizeof *old->extent) == 0) &&
           (!new->has_digest ||
            (old->has_digest && memcmp(old->digest, new->digest, sizeof old->digest) == 0));
}

static const char *old_name(const struct inheriting *h, uint64_t index,
                            char name[STAGING_NAME_SIZE + 8])
{
    char file[STAGING_NAME_SIZE];

    (void)staging_file(index, file);
    (void)stpcpy(stpcpy(name, h->renamed ? STAGING_OLD_FILES : STAGING_FILES),
                 file + strlen(STAGING_FILES));
    return name;
}

/* Gives a file, whose name is that of an old manifest, the number and the metadata that it has now; *st: its status then.
 * Returns 0, or -1 with *e. */
static int rename_file(struct inheriting *h, const struct entry *old, const struct entry *new,
                       bool whole, struct stat *st, struct error *e)
{
    const struct staging *s = &h->w->staging;
    char from[STAGING_NAME_SIZE + 8], to[STAGING_NAME_SIZE];

    (void)old_name(h, old->index, from);
    /* makes the folder, too */
    int file = staging_open_file(s, new->index, false);
    if (file < 0)
        return staging_failed(s, "resumed", -file, e);
    (void)close(file);
    if (renameat(s->folder, from, s->folder, staging_file(new->index, to)) != 0)
        return staging_failed(s, "resumed", errno, e);
    struct metadata_place place = {.file = -1, .folder = s->folder, .name = to};
    int result = whole ? metadata_differ(&h->w->metadata, &place, st, new) : 0;
    if (result == 1)
        result = metadata_set(&h->w->metadata, &place, st, new);
    if (result == 0 && fstatat(s->folder, to, st, AT_SYMLINK_NOFOLLOW) != 0)
        result = -errno;
    return result == 0 ? 0 : staging_failed(s, "resumed", -result, e);
}

/* Somebody has written to a file since its record was, perhaps this daemon, when it was killed: leaves in the record only
 * what its digests confirm. Returns 0; 1: nothing of it can be used; -1 with *e. */
static int check_pieces(struct inheriting *h, struct partial *p, const struct entry *old,
                        struct tree_progress *progress, struct error *e)
{
    const struct staging *s = &h->w->staging;
    const struct file_data data = file_data_of(old);
    char name[STAGING_NAME_SIZE + 8];

    if (p->pieces == 0 || data.extent != NULL) /* holes have no digests */
        return 1;
    int file = openat(s->folder, old_name(h, old->index, name), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    /* a file whose mode closes it to its owner is whole, or nearly */
    int result = file >= 0 ? arrivals_check_pieces(p, file, &data, progress) : 1;
    if (file >= 0)
        (void)close(file);
    if (result == -ECANCELED)
        return writer_stopped(progress, e) ? -1 : 1;
    if (result == -ENOMEM)
        return error_set(e, ERROR_MEMORY, "out of memory");
    return result == 0 && p->pieces > 0 ? 0 : 1;
}

/* Whether what the record says about a file is true of the file that is there. `part`: what has arrived of it; NULL: all.
 * Returns 0 with its status; 1: no; -1 with *e. */
static int check_record(struct inheriting *h, struct partial *part, const struct entry *old,
                        struct tree_progress *progress, struct stat *st, struct error *e)
{
    const struct staging *s = &h->w->staging;
    char name[STAGING_NAME_SIZE + 8];

    if (fstatat(s->folder, old_name(h, old->index, name), st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT ? 1 : staging_failed(s, "resumed", errno, e);
    if (!S_ISREG(st->st_mode) || (uint64_t)st->st_size != old->size)
        return 1;
    if (part == NULL)
        return arrivals_whole_is_same(&h->arrivals, old->index, st) ? 0 : 1;
    return part->stamp == arrivals_stamp_of(old->index, st)
               ? 0
               : check_pieces(h, part, old, progress, e);
}

/* Notes what has arrived of a file. Returns 0, or -1 with *e. */
static int note(struct inheriting *h, struct partial *from, const struct entry *new,
                const struct stat *st, struct error *e)
{
    struct arrivals *a = &h->w->arrivals;

    h->w->has_arrivals = true;
    if (from == NULL) {
        if (h->renamed)
            arrivals_stamp_whole(a, new->index, st);
        arrivals_set_whole(a, new->index);
        return 0;
    }
    struct partial *to = arrivals_add(a, new->index);
    if (to == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory");
    to->stamp = arrivals_stamp_of(new->index, st);
    to->piece = from->piece;
    to->pieces = from->pieces;
    to->pieces_room = from->pieces_room;
    from->piece = NULL;
    from->pieces = from->pieces_room = 0;
    for (size_t i = 0; i < from->spans.count; i++)
        if (from->spans.span[i].end <= new->bytes &&
            spans_add(&to->spans, from->spans.span[i].begin, from->spans.span[i].end) != 0)
            return error_set(e, ERROR_MEMORY, "out of memory");
    return 0;
}

/* Takes what has arrived of a file that both manifests have. */
static int take(struct inheriting *h, const struct entry *old, const struct entry *new,
                struct tree_progress *progress, struct error *e)
{
    const bool whole = arrivals_whole(&h->arrivals, old->index);
    struct partial *part = whole ? NULL : arrivals_find(&h->arrivals, old->index);
    struct stat st;

    if ((!whole && part == NULL) || !same_data(old, new) ||
        state_of(h->w->state, new->index) != STATE_NEW)
        return 0;
    int result = check_record(h, part, old, progress, &st, e);
    if (result != 0)
        return result == 1 ? 0 : -1;
    if (h->renamed && rename_file(h, old, new, whole, &st, e) != 0)
        return -1;
    return note(h, part, new, &st, e);
}

/* --- all files --- */

static int merge_from(struct inheriting *h, struct manifest_cursor *olds,
                      struct manifest_cursor *news, struct tree_progress *progress, struct error *e)
{
    struct entry old, new;
    int left = manifest_next(olds, &old, e), right = manifest_next(news, &new, e);

    while (left == 1 && right == 1) {
        int order = manifest_compare_paths(old.path, new.path);
        if (writer_stopped(progress, e) || (order == 0 && take(h, &old, &new, progress, e) != 0))
            return -1;
        if (order <= 0)
            left = manifest_next(olds, &old, e);
        if (order >= 0)
            right = manifest_next(news, &new, e);
    }
    return left < 0 || right < 0 ? -1 : 0;
}

static int merge(struct inheriting *h, struct tree_progress *progress, struct error *e)
{
    struct manifest_cursor *olds = manifest_cursor_new(&h->manifest),
                           *news = manifest_cursor_new(&h->w->manifest);
    int result = olds == NULL || news == NULL ? error_set(e, ERROR_MEMORY, "out of memory")
                                              : merge_from(h, olds, news, progress, e);

    manifest_cursor_free(olds);
    manifest_cursor_free(news);
    return result;
}

/* Sets old files aside, because their numbers mean other files now. */
static int set_aside(struct inheriting *h, struct error *e)
{
    const struct staging *s = &h->w->staging;

    if (memcmp(h->manifest.digest, h->w->manifest.digest, sizeof h->manifest.digest) == 0)
        return 0;
    if (arrivals_forget(s, e) != 0)
        return -1;
    if (renameat(s->folder, STAGING_FILES, s->folder, STAGING_OLD_FILES) != 0 && errno != ENOENT)
        return staging_failed(s, "resumed", errno, e);
    h->renamed = true;
    return 0;
}

/* Opens the old manifest. Returns 1; 0: there is none that can be used; -1 with *e. */
static int open_old(struct inheriting *h, struct error *e)
{
    const struct staging *s = &h->w->staging;
    struct stat st;

    h->file = openat(s->folder, STAGING_MANIFEST, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (h->file < 0)
        return errno == ENOENT ? 0 : staging_failed(s, "resumed", errno, e);
    if (fstat(h->file, &st) != 0)
        return staging_failed(s, "resumed", errno, e);
    if (manifest_open(&h->manifest, h->file, (uint64_t)st.st_size, e) != 0)
        return e->code == ERROR_PROTOCOL ? 0 : -1;
    if (arrivals_init(&h->arrivals, h->manifest.entries) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory");
    return arrivals_load(&h->arrivals, s, h->manifest.digest, e) == 0 ? 1 : -1;
}

/* The new manifest is now the one of the files in the staging. */
static int keep_manifest(const struct staging *s, struct error *e)
{
    if (renameat(s->folder, STAGING_MANIFEST_NEW, s->folder, STAGING_MANIFEST) != 0)
        return staging_failed(s, "described", errno, e);
    return 0;
}

int writer_inherit(struct tree_writer *w, struct tree_progress *progress, struct error *e)
{
    struct inheriting h = {.w = w, .file = -1};
    const struct staging *s = &w->staging;
    int result = s->resumed ? open_old(&h, e) : 0;

    if (result == 0 && s->resumed)
        result = arrivals_forget(s, e) != 0 || staging_clear(s, STAGING_FILES, e) != 0 ? -1 : 0;
    else if (result == 1 && set_aside(&h, e) != 0)
        result = -1;
    const bool has_old = result == 1;
    if (result >= 0)
        result = arrivals_open_stamps(&w->arrivals, s, e);
    if (result == 0 && has_old)
        result = merge(&h, progress, e);
    if (result == 0)
        result = keep_manifest(s, e);
    w->inherited = result == 0;
    if (result == 0 && h.renamed)
        result = staging_clear(s, STAGING_OLD_FILES, e);
    if (result == 0 && w->has_arrivals)
        result = writer_save(w, true, e);
    arrivals_free(&h.arrivals);
    if (h.file >= 0)
        (void)close(h.file);
    return result;
}
