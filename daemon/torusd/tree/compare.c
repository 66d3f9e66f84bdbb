/* What an interrupted copy has left in the staging is used by the next one to the same target. If the manifest is
 * another one, files are taken that both have, with equal sizes and times. */
#include "daemon/torusd/tree/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/names.h"
#include "daemon/torusd/tree/file_data.h"
#include "daemon/torusd/tree/inodes.h"
#include "daemon/torusd/tree/removal.h"
#include "proto/text.h"

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

/* Gives a file, whose name is that of an old manifest, the number and the metadata that it has now; *st: its status
 * then. Returns 0, or -1 with *e. */
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

/* Somebody has written to a file since its record was, perhaps this daemon, when it was killed: leaves in the record
 * only what its digests confirm. Returns 0; 1: nothing of it can be used; -1 with *e. */
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
    file_close(&file);
    if (result == -ECANCELED)
        return tree_stopped(progress, e) ? -1 : 1;
    if (result == -ENOMEM)
        return error_set(e, ERROR_MEMORY, "out of memory");
    return result == 0 && p->pieces > 0 ? 0 : 1;
}

/* Whether what the record says about a file is true of the file that is there. `part`: what has arrived of it; NULL:
 * all. Returns 0 with its status; 1: no; -1 with *e. */
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
        if (from->spans.item[i].end <= new->bytes &&
            intervals_add(&to->spans, from->spans.item[i].begin, from->spans.item[i].end) != 0)
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
        if (tree_stopped(progress, e) || (order == 0 && take(h, &old, &new, progress, e) != 0))
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
    file_close(&h.file);
    return result;
}

/* Comparing the manifest with what the target has: compare(). */

struct comparing {
    struct tree_writer *w;
    struct tree_progress *progress;
    struct tree_at target, links;
    struct file_links *names; /* files of the target with several names; NULL: none yet */
    char
        absent[MANIFEST_PATH_MOST + 1]; /* the last folder of the manifest that the target lacks, */
    size_t absent_length;               /* if has_absent */
    bool has_absent;
    dev_t device; /* of the target */
};

/* What has the name of an entry. */
struct found {
    int folder;
    const char *name;
    struct stat st;
    bool mount;
};

/* --- what is in the way --- */

/* A folder where the copy has none is replaced if it is empty, or if the copy deletes all that is in it. */
static int check_folder_in_way(struct comparing *c, const struct entry *entry, struct error *e)
{
    struct tree_writer *w = c->w;
    struct removal removal = {.at = &c->target,
                              .patterns = w->patterns,
                              .look_only = true,
                              .stop = &c->progress->stop,
                              .paths = &w->going};

    if (removal_of(&removal, entry->path, e) != 0)
        return -1;
    if (removal.stays || (removal.removed > 1 && !w->rules.delete))
        return tree_at_refused(
            &c->target, entry->path,
            removal.stays
                ? "is a folder where the copy has none, and something in it is not to be "
                  "removed: move it away"
                : "is a folder with something in it, and the copy has none there: move it "
                  "away, or let the copy delete (--delete)",
            e);
    w->report.removed += removal.removed - 1;
    return 0;
}

/* Checks that placing will be able to replace or make a name. */
static int check_changeable(struct comparing *c, const struct entry *entry,
                            const struct found *found, bool exists, struct error *e)
{
    /* the folder that gets the sources has no entry, and keeps its mode all the time */
    if (c->w->rules.into && strchr(entry->path, '/') == NULL &&
        faccessat(found->folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        return tree_at_refused(&c->target, "", "does not let torusd make names in it", e);
    return tree_at_check_change(&c->target, found->folder, exists ? found->name : NULL, entry->path,
                                e) == 0
               ? 0
               : -1;
}

/* --- one entry --- */

/* Sets *same: a file is equal, as far as the copy compares files. Returns 0; 1: only its time differs; -1 with *e. */
static int compare_file(struct comparing *c, const struct entry *entry, const struct found *found,
                        bool *same, struct error *e)
{
    *same = (uint64_t)found->st.st_size == entry->size &&
            metadata_same_time(&c->w->metadata, found->st.st_mtim, entry->modified);
    if (!c->w->checksum || !entry->has_digest)
        return 0;
    bool same_time = *same;
    *same = false;
    if ((uint64_t)found->st.st_size != entry->size)
        return 0;
    int result = compare_contents(found->folder, found->name, entry, c->progress);
    if (result < 0)
        return tree_at_failed(&c->target, entry->path, "read", -result, e);
    *same = result == 1 && same_time;
    return result == 1 && !same_time ? 1 : 0;
}

static int compare_symlink(struct comparing *c, const struct entry *entry,
                           const struct found *found, bool *same, struct error *e)
{
    char text[MANIFEST_PATH_MOST + 2];
    ssize_t length = readlinkat(found->folder, found->name, text, sizeof text);

    if (length < 0)
        return tree_at_failed(&c->target, entry->path, "read", errno, e);
    *same = (size_t)length == strlen(entry->link) && memcmp(text, entry->link, (size_t)length) == 0;
    return 0;
}

/* A second name is unchanged if it is one of the same file, and that stays. */
static int compare_hardlink(struct comparing *c, const struct entry *entry,
                            const struct found *found, bool *same, struct error *e)
{
    const char *name;
    struct stat st;
    bool mount;

    *same = false;
    if (state_of(c->w->state, entry->linked) == STATE_NEW)
        return 0;
    int folder = tree_at_parent(&c->links, entry->link, &name);
    int result = folder < 0 ? folder : tree_at_status(folder, name, &st, &mount);
    if (result < 0 && result != -ENOENT && result != -ENOTDIR)
        return tree_at_failed(&c->links, entry->link, "examined", -result, e);
    *same = result == 0 && st.st_ino == found->st.st_ino && st.st_dev == found->st.st_dev;
    return 0;
}

/* Whether a file of the target is that of an earlier entry, although the copy has two files. Returns 1, 0, or -1 with
 * *e. */
static int is_linked(struct comparing *c, const struct entry *entry, const struct found *found,
                     struct error *e)
{
    char path[MANIFEST_PATH_MOST + 1];
    uint64_t index;

    if (found->st.st_nlink < 2)
        return 0;
    if (c->names == NULL)
        c->names = file_links_new(c->w->files);
    if (c->names == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for hard links");
    int result = file_links_find(c->names, found->st.st_dev, found->st.st_ino, &index, path, e);
    return result != 0 ? result
                       : file_links_add(c->names, found->st.st_dev, found->st.st_ino, entry->index,
                                        entry->path, e);
}

/* Whether what is there is an older version, of which pieces may be used; or may be the beginning of the new one. */
static bool has_old_version(const struct comparing *c, const struct entry *entry,
                            const struct found *found)
{
    return S_ISREG(found->st.st_mode) && found->st.st_size > 0 &&
           (entry->bytes >= DIGESTS_FILE_LEAST ||
            (c->w->sizes && (uint64_t)found->st.st_size < entry->size));
}

/* Compares an entry with what has its name. Returns its state, or -1 with *e. */
static int compare_existing(struct comparing *c, const struct entry *entry, struct found *found,
                            struct error *e)
{
    static const mode_t type[] = {[ENTRY_FOLDER] = S_IFDIR,
                                  [ENTRY_FILE] = S_IFREG,
                                  [ENTRY_SYMLINK] = S_IFLNK,
                                  [ENTRY_HARDLINK] = S_IFREG};
    struct metadata_place place = {.file = -1, .folder = found->folder, .name = found->name};
    bool is_folder = S_ISDIR(found->st.st_mode), same = true;
    int result = 0;

    if (entry->path_length == 0)
        c->device = found->st.st_dev;
    if (found->mount && entry->path_length > 0)
        return tree_at_refused(&c->target, entry->path,
                               "is a mount point: copy to it on its own, or leave it out", e);
    if (is_folder && found->st.st_dev != c->device)
        return tree_at_refused(&c->target, entry->path,
                               "is on another file system than the target: copy to it on its own, "
                               "or leave it out",
                               e);
    if ((found->st.st_mode & S_IFMT) != type[entry->kind]) {
        if (entry->path_length == 0 && S_ISLNK(found->st.st_mode) && entry->kind == ENTRY_FOLDER)
            return tree_at_refused(&c->target, "",
                                   "is a symbolic link: name the folder that it leads to", e);
        if (is_folder && check_folder_in_way(c, entry, e) != 0)
            return -1;
        return STATE_NEW;
    }
    if (entry->kind == ENTRY_FILE) {
        int linked = is_linked(c, entry, found, e);
        if (linked < 0)
            return -1;
        if (linked == 1)
            same = false;
        else
            result = compare_file(c, entry, found, &same, e);
    } else if (entry->kind == ENTRY_SYMLINK)
        result = compare_symlink(c, entry, found, &same, e);
    else if (entry->kind == ENTRY_HARDLINK)
        return compare_hardlink(c, entry, found, &same, e) != 0 ? -1
               : same                                           ? STATE_SAME
                                                                : STATE_NEW;
    if (result != 0)
        return result < 0 ? -1 : STATE_METADATA;
    if (!same) {
        c->w->old_bytes += (uint64_t)found->st.st_blocks * 512;
        return STATE_NEW | (has_old_version(c, entry, found) ? STATE_OLD : 0);
    }
    /* a staging inside the target has changed its time */
    if (entry->path_length == 0 && strcmp(found->name, ".") == 0)
        found->st.st_mtim = c->w->staging.before;
    result = metadata_differ(&c->w->metadata, &place, &found->st, entry);
    if (result < 0)
        return tree_at_failed(&c->target, entry->path, "examined", -result, e);
    return result == 1 ? STATE_METADATA : STATE_SAME;
}

/* Whether a folder above is known to be absent. */
static bool is_in_absent(const struct comparing *c, const struct entry *entry)
{
    return c->has_absent && manifest_path_is_in(entry->path, c->absent, c->absent_length);
}

static int find(struct comparing *c, const struct entry *entry, struct found *found,
                struct error *e)
{
    if (is_in_absent(c, entry))
        return -ENOENT;
    found->folder = tree_at_parent(&c->target, entry->path, &found->name);
    int result = found->folder < 0
                     ? found->folder
                     : tree_at_status(found->folder, found->name, &found->st, &found->mount);
    if (result < 0 && result != -ENOENT && result != -ENOTDIR) {
        (void)tree_at_failed(&c->target, entry->path, "examined", -result, e);
        return -1;
    }
    return result == 0 ? 0 : -ENOENT;
}

/* Readers leave such names out; with them, the files of this very copy could be replaced. */
static int refuse_staging(const struct entry *entry, struct error *e)
{
    const char *slash = strrchr(entry->path, '/');
    char shown[160];

    if (!staging_is_name(slash != NULL ? slash + 1 : entry->path))
        return 0;
    return error_set(e, ERROR_PROTOCOL,
                     "the description of the trees has %s, a name that only copies use themselves",
                     text_printable(shown, sizeof shown, entry->path));
}

/* Checks that the metadata of what is there can be changed. */
static int check_metadata(struct comparing *c, const struct entry *entry, struct error *e)
{
    struct metadata_place place = {.file = -1};

    place.folder = tree_at_parent(&c->target, entry->path, &place.name);
    if (place.folder >= 0 && metadata_is_fixed(&place))
        return tree_at_refused(&c->target, entry->path,
                               "has another mode, owner, time or attributes than its source, and "
                               "is immutable or append-only (see chattr)",
                               e);
    return 0;
}

static int compare_entry(void *context, const struct entry *entry, struct error *e)
{
    struct comparing *c = context;
    struct tree_writer *w = c->w;
    struct found found = {.folder = -1};
    int state, result = tree_stopped(c->progress, e) || refuse_staging(entry, e) != 0
                            ? -1
                            : find(c, entry, &found, e);

    if (result == -1)
        return -1;
    state = result == 0 ? compare_existing(c, entry, &found, e) : STATE_NEW | STATE_ABSENT;
    if (state < 0)
        return -1;
    if (state == STATE_METADATA && check_metadata(c, entry, e) != 0)
        return -1;
    if ((state & STATE_MASK) == STATE_NEW) {
        if (found.folder >= 0) {
            /* the folder in the way may have been looked through */
            found.folder = tree_at_parent(&c->target, entry->path, &found.name);
            if (found.folder >= 0 && check_changeable(c, entry, &found, result == 0, e) != 0)
                return -1;
        }
        if (entry->kind == ENTRY_FOLDER && !is_in_absent(c, entry)) {
            c->has_absent = true;
            c->absent_length = entry->path_length;
            memcpy(c->absent, entry->path, entry->path_length + 1);
        }
    }
    w->state[entry->index] = (uint8_t)state;
    w->report.added += (state & STATE_ABSENT) != 0;
    w->report.unchanged += state == STATE_SAME;
    w->report.changed += state != STATE_SAME && (state & STATE_ABSENT) == 0;
    if (state != STATE_SAME)
        writer_note_first(w, entry->path);
    const uint64_t size = (uint64_t)found.st.st_size;
    if ((state & STATE_OLD) != 0 &&
        !wanted_add(w->wanted, entry->index, size < entry->size ? size : 0))
        w->state[entry->index] = STATE_NEW; /* too many: this one is sent whole */
    (void)atomic_fetch_add(&c->progress->files, 1);
    return 0;
}

/* --- all --- */

/* Counts what will be removed. */
static int count_extras(struct comparing *c, struct error *e)
{
    struct tree_writer *w = c->w;
    struct removal removal = {.at = &c->target,
                              .patterns = w->patterns,
                              .look_only = true,
                              .stop = &c->progress->stop,
                              .paths = &w->going};

    if (!w->rules.delete)
        return 0;
    if (extras_remove(&w->manifest, &removal, e) != 0)
        return -1;
    w->report.removed += removal.removed;
    if (removal.removed > 0)
        writer_note_first(w, removal.first);
    return 0;
}

/* Checks that the copy does not remove more than it may. With look_only, the report says how much that is. */
static int check_removals(const struct tree_writer *w, struct error *e)
{
    if (w->delete_most == 0 || w->look_only || w->report.removed < w->delete_most)
        return 0;
    return error_set(e, ERROR_REFUSED,
                     "the copy would remove %llu %s of %s, and may remove %llu (--max-delete): "
                     "nothing was changed here; --dry-run lists them",
                     (unsigned long long)w->report.removed,
                     text_plural(w->report.removed, "entry", "entries"), w->staging.printable,
                     (unsigned long long)w->delete_most - 1);
}

/* Checks the target itself, for copies without an entry for it. */
static int check_target(struct comparing *c, struct error *e)
{
    const struct staging *s = &c->w->staging;
    struct stat st;
    bool mount;

    if (!c->w->rules.into || s->above < 0)
        return 0;
    int result = tree_at_status(s->above, s->target, &st, &mount);
    if (result == 0 && S_ISLNK(st.st_mode))
        return tree_at_refused(&c->target, "",
                               "is a symbolic link: name the folder that it leads to", e);
    if (result == 0 && !S_ISDIR(st.st_mode))
        return tree_at_refused(&c->target, "", "is not a folder, so nothing can be copied into it",
                               e);
    if (result < 0 && result != -ENOENT)
        return tree_at_failed(&c->target, "", "examined", -result, e);
    c->device = st.st_dev;
    return 0;
}

static int open_manifest(struct tree_writer *w, struct error *e)
{
    if (w->document[TREE_MANIFEST] < 0)
        return error_set(e, ERROR_PROTOCOL, "the description of the trees is missing");
    if (manifest_open(&w->manifest, w->document[TREE_MANIFEST], w->document_size[TREE_MANIFEST],
                      e) != 0)
        return -1;
    w->state = calloc(w->manifest.entries + 1, 1);
    w->wanted = calloc(1, sizeof *w->wanted);
    if (w->wanted != NULL)
        w->wanted->sizes = w->sizes;
    if (w->state == NULL || w->wanted == NULL ||
        arrivals_init(&w->arrivals, w->manifest.entries) != 0)
        return error_set(e, ERROR_MEMORY, "out of memory for %llu entries",
                         (unsigned long long)w->manifest.entries);
    w->report = (struct tree_report){.files = w->manifest.files + w->manifest.hardlinks,
                                     .folders = w->manifest.folders,
                                     .links = w->manifest.symlinks,
                                     .bytes = w->manifest.stream};
    return 0;
}

int writer_compare(struct tree_writer *w, struct tree_progress *progress, const uint8_t **wanted,
                   size_t *length, struct error *e)
{
    struct comparing c = {.w = w, .progress = progress};

    if (open_manifest(w, e) != 0)
        return -1;
    tree_at_init(&c.target, w->staging.above, w->staging.target, w->staging.path);
    tree_at_init(&c.links, w->staging.above, w->staging.target, w->staging.path);
    int result = check_target(&c, e);
    if (result == 0)
        result = manifest_each(&w->manifest, compare_entry, &c, e);
    if (result == 0)
        result = count_extras(&c, e);
    if (result == 0)
        result = check_removals(w, e);
    tree_at_close(&c.target);
    tree_at_close(&c.links);
    file_links_free(c.names);
    if (result == 0 && !w->look_only)
        result = writer_inherit(w, progress, e);
    *wanted = w->wanted->bytes;
    *length = w->wanted->length;
    return result;
}
