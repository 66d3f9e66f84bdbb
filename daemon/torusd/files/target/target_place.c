#include "daemon/torusd/files/target/target.h"

#include <errno.h>
#include <string.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/files/target/target_check.h"
#include "daemon/torusd/files/target/target_contents.h"
#include "daemon/torusd/files/target/target_names.h"
#include "daemon/torusd/files/target/target_temporary.h"

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
    if (t->entry.contents != 0)
        return target_check_contents(t, t->entry.contents, e);
    log_warning("%s/%s is from an earlier release of torusd, which did not record what tells "
                "whether somebody has changed it",
                t->entry.folder, t->entry.temporary);
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

int target_place(struct target *t, struct error *e)
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
