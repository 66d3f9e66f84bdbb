#include "daemon/torusd/files/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/file_stamp.h"

/* --- the temporary folder --- */

/* Returns 0 if the entry with the temporary name is the open temporary folder, -ESTALE if it is another
 * one, or another -errno. */
static int target_check_temporary(const struct target *t)
{
    const struct file_system *files = target_files(t);
    struct file_status open, named;
    int result = files->status(files->context, t->folder, &open);

    if (result == 0)
        result = files->status_at(files->context, t->parent, t->entry.temporary, &named);
    if (result == 0 && (open.device != named.device || open.number != named.number))
        result = -ESTALE;
    return result == -ENOENT ? -ESTALE : result;
}

struct removal {
    const struct target *t;
    int error;
};

static void remove_file(void *argument, const char *name)
{
    struct removal *r = argument;
    const struct file_system *files = target_files(r->t);
    int result =
        old_result_is_name(name) ? files->remove_file(files->context, r->t->folder, name) : 0;

    if (result < 0 && r->error == 0)
        r->error = result;
}

/* Removes the open folder that has the temporary name, with its files. Returns 0 or -errno. */
static int target_remove_temporary(const struct target *t)
{
    const struct file_system *files = target_files(t);
    struct removal r = {t, 0};
    int result = files->list(files->context, t->folder, remove_file, &r);

    if (result < 0 || r.error < 0)
        return result < 0 ? result : r.error;
    result = attributes_clean_up(files, t->folder);
    if (result == 0)
        result = target_check_temporary(t);
    if (result < 0)
        return result;
    return files->remove_folder(files->context, t->parent, t->entry.temporary);
}

/* Removes the journal's entry. To be called last. */
static void target_forget(struct target *t)
{
    if (t->has_entry)
        journal_remove(t->journal, t->id);
    t->has_entry = false;
}

/* --- whether the files are those that torusd has written --- */

#define AGAIN "start the exchange again"

struct adding {
    const struct target *t;
    uint64_t sum;
    struct error *error;
    bool failed;
};

static mode_t mode_of(enum file_kind kind)
{
    return kind == FILE_REGULAR  ? S_IFREG
           : kind == FILE_FOLDER ? S_IFDIR
           : kind == FILE_LINK   ? S_IFLNK
                                 : 0;
}

uint64_t target_stamp_of(uint32_t name, const struct file_status *status)
{
    return file_stamp(name, status->number, status->size, status->changed);
}

int target_file_differs(const struct target *t, const char *name, enum file_kind kind,
                        struct error *e)
{
    char path[PATH_MAX + 2 * NAME_MAX + 3];

    (void)snprintf(path, sizeof path, "%s/%s/%s", t->entry.folder, t->entry.temporary, name);
    return kind == FILE_REGULAR && old_result_is_name(name)
               ? file_stamp_changed(path, AGAIN, e)
               : file_stamp_refuse(path, mode_of(kind), AGAIN, e);
}

static void add_file(void *argument, const char *name)
{
    struct adding *a = argument;
    const struct file_system *files = target_files(a->t);
    const struct journal_entry *entry = &a->t->entry;
    struct file_status status;

    if (a->failed)
        return;
    int result = files->status_at(files->context, a->t->folder, name, &status);
    a->failed = result < 0 || status.kind != FILE_REGULAR || !old_result_is_name(name);
    if (result < 0)
        (void)error_set(a->error, ERROR_IO, "%s/%s/%s cannot be examined: %s", entry->folder,
                        entry->temporary, name, strerror(-result));
    else if (a->failed)
        (void)target_file_differs(a->t, name, status.kind, a->error);
    else
        a->sum += target_stamp_of((uint32_t)strtoul(name, NULL, 10), &status);
}

int target_contents(const struct target *t, uint64_t *contents, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct adding a = {.t = t, .error = e};
    int result = files->list(files->context, t->folder, add_file, &a);

    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s cannot be read: %s", t->entry.folder,
                         t->entry.temporary, strerror(-result));
    *contents = a.sum | 1; /* never 0 */
    return a.failed ? -1 : 0;
}

/* Compares the sum of the stamps. Returns 0, or -1 with *e, which says what to remove. */
static int target_check_contents(const struct target *t, uint64_t contents, struct error *e)
{
    uint64_t now;

    if (target_contents(t, &now, e) != 0)
        return -1;
    if (now == (contents | 1))
        return 0;
    return error_set(e, ERROR_DAMAGED,
                     "somebody has changed files in %s/%s after they had arrived: remove it, "
                     "and " AGAIN,
                     t->entry.folder, t->entry.temporary);
}

/* --- the life of a target --- */

void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 struct made_folders *made, mode_t output_mode, const char *id)
{
    *t = (struct target){.roots = roots,
                         .journal = journal,
                         .made = made,
                         .parent = -1,
                         .folder = -1,
                         .output_mode = output_mode};
    (void)snprintf(t->id, sizeof t->id, "%s", id);
}

void target_close(struct target *t)
{
    target_close_one(t, &t->folder);
    target_close_one(t, &t->parent);
    made_folders_leave(t->made, t->use, false);
    t->use = NULL;
}

int target_create(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int file = target_files(t)->create_file(target_files(t)->context, t->folder, text,
                                            t->attributes.file_mode);
    int result = file < 0 ? file : attributes_set_file(target_files(t), file, &t->attributes);
    if (result < 0) {
        target_close_one(t, &file);
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be created: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-result));
    }
    return file;
}

int target_reopen_file(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int file = target_files(t)->reopen_file(target_files(t)->context, t->folder, text);
    if (file < 0)
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be opened again: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-file));
    return file;
}

int target_find_file(const struct target *t, uint32_t name, struct file_status *status)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    return target_files(t)->status_at(target_files(t)->context, t->folder, text, status);
}

int target_remove_file(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int result = target_files(t)->remove_file(target_files(t)->context, t->folder, text);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be removed: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-result));
    return 0;
}

int target_seal(struct target *t, uint64_t contents, struct error *e)
{
    if (target_check_contents(t, contents, e) != 0)
        return -1;
    int result = target_sync_one(t, t->folder);

    if (result == 0)
        result = target_sync_one(t, t->parent);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s cannot be synced: %s", t->entry.folder,
                         t->entry.temporary, strerror(-result));
    t->entry.finished = true;
    t->entry.contents = contents | 1;
    return journal_write(t->journal, t->id, &t->entry, e);
}

/* The journal has an entry for each of the two names, so that the folder has an entry after a power failure,
 * whatever its name. */
static int rename_temporary(struct target *t, const struct target *former, struct error *e)
{
    const struct file_system *files = target_files(t);
    int result = target_check_temporary(former);

    if (result == 0 && journal_write(t->journal, t->id, &t->entry, e) != 0)
        return error_wrap(e, "state folder");
    if (result == 0)
        result =
            files->rename(files->context, t->parent, former->entry.temporary, t->entry.temporary);
    if (result < 0)
        return error_set(
            e, ERROR_IO, "%s/%s cannot be renamed: %s", t->entry.folder, former->entry.temporary,
            result == -ESTALE ? "another process has moved or replaced it" : strerror(-result));
    return 0;
}

int target_rename(struct target *t, const char *id, uint32_t rank, struct error *e)
{
    const struct target former = *t;

    if (!journal_id_is_valid(id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", id);
    t->entry.finished = false;
    t->entry.contents = 0;
    if (strcmp(t->id, id) == 0) /* retried before other nodes knew of this attempt */
        return former.entry.finished ? journal_write(t->journal, id, &t->entry, e) : 0;
    (void)snprintf(t->id, sizeof t->id, "%s", id);
    if (target_set_temporary(t, t->entry.final, rank, e) != 0 ||
        rename_temporary(t, &former, e) != 0) {
        journal_remove(t->journal, t->id);
        *t = former;
        return -1;
    }
    int result = target_sync_one(t, t->parent);
    journal_remove(t->journal, former.id);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s cannot be synced: %s", t->entry.folder,
                         strerror(-result));
    return 0;
}

int target_discard(struct target *t, struct error *e)
{
    int result = 0;

    if (t->folder >= 0)
        result = target_remove_temporary(t);
    target_close_one(t, &t->folder);
    if (result == 0)
        made_folders_remove(t->made, t->use, t->roots, &t->above, t->entry.made, &t->parent);
    if (result == 0 && t->has_entry && t->parent >= 0)
        result = target_sync_one(t, t->parent);
    if (result == -ESTALE)
        log_warning("another process has moved or replaced %s/%s: torusd does not touch it",
                    t->entry.folder, t->entry.temporary);
    else if (result < 0)
        (void)error_set(e, ERROR_IO, "%s/%s cannot be removed: %s; torusd tries again",
                        t->entry.folder, t->entry.temporary, strerror(-result));
    if (result == 0 || result == -ESTALE)
        target_forget(t);
    target_close(t);
    return result == 0 || result == -ESTALE ? 0 : -1;
}

int target_reopen(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);

    if (journal_read(t->journal, t->id, &t->entry, e) != 0)
        return -1;
    t->has_entry = true;
    if (roots_find(t->roots, t->entry.folder, &t->above, e) != 0)
        return error_wrap(e, "output of exchange %s", t->id);
    t->parent = roots_open_folder(t->roots, &t->above, t->above.path);
    if (t->parent >= 0)
        t->folder = files->open_folder(files->context, t->parent, t->entry.temporary);
    int result = t->parent < 0 ? t->parent : t->folder;
    if (result < 0 && result != -ENOENT)
        return error_set(e, ERROR_IO, "%s/%s cannot be opened: %s", t->entry.folder,
                         t->parent < 0 ? "" : t->entry.temporary, strerror(-result));
    return 0;
}

/* --- putting in place --- */

static int cannot_rename(const struct target *t, int result, struct error *e)
{
    return error_set(e, ERROR_IO, "%s/%s cannot be renamed to %s: %s", t->entry.folder,
                     t->entry.temporary, t->entry.final,
                     result == -ESTALE ? "another process has moved or replaced it"
                                       : strerror(-result));
}

/* Determines the attributes again after a restart: those of the folder in the target's place or, if there is
 * none, of a new folder. */
static int find_attributes(struct target *t)
{
    const struct file_system *files = target_files(t);
    struct file_status status;
    int result;

    if (t->has_attributes)
        return 0;
    result = attributes_of_new(files, t->folder, t->output_mode, &t->attributes);
    if (result == 0)
        result = files->status_at(files->context, t->parent, t->entry.final, &status);
    if (result == 0) {
        t->attributes.mode = status.mode; /* the temporary folder has its lists already */
        t->attributes.owner = status.owner;
        t->attributes.group = status.group;
    }
    t->has_attributes = result == 0 || result == -ENOENT;
    return t->has_attributes ? 0 : result;
}

/* Gives the temporary folder its final attributes. Returns 0 or -errno. */
static int open_temporary(struct target *t)
{
    int result = find_attributes(t);

    if (result == 0)
        result = attributes_set(target_files(t), t->folder, &t->attributes);
    return result > 0 ? target_sync_one(t, t->folder) : result;
}

/* Exchanges the names of the new and the old folder. Afterwards t->folder is the old one. */
static int swap_folders(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct file_status fresh, old;
    int result = files->status(files->context, t->folder, &fresh);

    if (result == 0)
        result = files->status_at(files->context, t->parent, t->entry.final, &old);
    if (result < 0)
        return cannot_rename(t, result, e);
    t->entry.new_number = fresh.number;
    t->entry.old_number = old.number;
    if (journal_write(t->journal, t->id, &t->entry, e) != 0)
        return error_wrap(e, "state folder");
    result = files->swap(files->context, t->parent, t->entry.temporary, t->entry.final);
    if (result < 0)
        return cannot_rename(t, result, e);
    target_close_one(t, &t->folder);
    t->folder = files->open_folder(files->context, t->parent, t->entry.temporary);
    t->old_result_remains = t->folder < 0;
    return 0;
}

/* Whether a crash has left the new result in place and the old one under the temporary name. Returns 1, 0, or
 * -1 with *e. */
static int is_swapped(const struct target *t, struct error *e)
{
    const struct journal_entry *entry = &t->entry;
    struct file_status status;

    if (entry->old_number == 0)
        return 0;
    int result = target_files(t)->status(target_files(t)->context, t->folder, &status);
    if (result < 0)
        return cannot_rename(t, result, e);
    if (status.number == entry->old_number || status.number == entry->new_number)
        return status.number == entry->old_number;
    return error_set(
        e, ERROR_IO,
        "torusd cannot tell which of %s/%s and %s is the new result, and touches neither",
        entry->folder, entry->temporary, entry->final);
}

/* Returns 0, or -1 with *e: the files are not those that were complete. */
static int check_contents(const struct target *t, struct error *e)
{
    char path[PATH_MAX + NAME_MAX + 2];

    if (t->entry.contents != 0)
        return target_check_contents(t, t->entry.contents, e);
    (void)snprintf(path, sizeof path, "%s/%s", t->entry.folder, t->entry.temporary);
    file_stamp_warn_of_none(path);
    return 0;
}

/* Returns 0, or -1 with *e. t->folder is open if an old result must be removed. */
static int put_in_place(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct error obstacle;
    enum target_occupant what;
    int result = is_swapped(t, e);

    if (result != 0)
        return result < 0 ? -1 : 0;
    result = target_check_temporary(t);
    if (result < 0)
        return cannot_rename(t, result, e);
    if (check_contents(t, e) != 0)
        return -1;
    if (target_check_free(t, &what, &obstacle) != 0)
        return error_set(e, obstacle.code, "%s; the complete output is kept as %s", obstacle.text,
                         t->entry.temporary);
    result = open_temporary(t);
    if (result == 0 && what == TARGET_OLD_RESULT)
        return swap_folders(t, e);
    if (result == 0)
        result = files->rename(files->context, t->parent, t->entry.temporary, t->entry.final);
    if (result < 0)
        return cannot_rename(t, result, e);
    target_close_one(t, &t->folder);
    return 0;
}

/* Removes the old result. If that fails, the new one is in place nevertheless. */
static void remove_old(struct target *t)
{
    int result = target_remove_temporary(t);

    if (result == 0)
        result = target_sync_one(t, t->parent);
    target_close_one(t, &t->folder);
    t->old_result_remains = result < 0;
    if (result < 0)
        log_warning(
            "%s/%s, the old result that %s has replaced, cannot be removed: %s; torusd tries again",
            t->entry.folder, t->entry.temporary, t->entry.final, strerror(-result));
}

int target_install(struct target *t, struct error *e)
{
    int result = 0;

    if (t->folder >= 0 && put_in_place(t, e) != 0)
        return -1;
    if (t->parent >= 0)
        result = target_sync_one(t, t->parent);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s cannot be synced: %s", t->entry.folder,
                         strerror(-result));
    if (t->folder >= 0)
        remove_old(t);
    if (!t->old_result_remains)
        target_forget(t);
    made_folders_leave(t->made, t->use, true);
    t->use = NULL;
    return 0;
}
