#include "daemon/torusd/files/target/target.h"

#include <errno.h>
#include <string.h>

#include "daemon/torusd/files/target/target_above.h"
#include "daemon/torusd/files/target/target_check.h"
#include "daemon/torusd/files/target/target_names.h"

#define ATTEMPTS 5 /* how often to try to make folders that other processes remove */

static int cannot_write(const struct target *t, int result, struct error *e)
{
    if (result == -ELOOP)
        return error_set(e, ERROR_REFUSED,
                         "a folder above target %s/%s is a symbolic link, and torusd creates no "
                         "targets through links: name the folder that the link leads to",
                         t->entry.folder, t->entry.final);
    return error_set(e, ERROR_IO, "target %s/%s cannot be written: %s", t->entry.folder,
                     t->entry.final, strerror(-result));
}

/* Makes the temporary folder. Returns 0 or -errno: -ENOENT if another process has removed a folder above. */
static int make_temporary(struct target *t)
{
    const struct file_system *files = target_files(t);
    int result = target_make_missing(t);

    if (result == 0)
        result =
            files->make_folder(files->context, t->parent, t->entry.temporary, ATTRIBUTES_PRIVATE);
    if (result < 0)
        return result;
    t->folder = files->open_folder(files->context, t->parent, t->entry.temporary);
    if (t->folder < 0) {
        (void)files->remove_folder(files->context, t->parent, t->entry.temporary);
        return t->folder;
    }
    return files->lock(files->context, t->folder);
}

/* Tries with two files whether the file system can exchange two names. Returns 0 or -errno. */
static int try_swap(const struct target *t)
{
    static const char *const name[] = {"0", "1"}; /* target_discard() would remove them */
    const struct file_system *files = target_files(t);
    int result = 0;

    for (unsigned i = 0; i < 2 && result >= 0; i++) {
        int file = files->create_file(files->context, t->folder, name[i], 0600);
        result = file;
        target_close_one(t, &file);
    }
    if (result >= 0)
        result = files->swap(files->context, t->folder, name[0], name[1]);
    for (unsigned i = 0; i < 2; i++) {
        int removed = files->remove_file(files->context, t->folder, name[i]);
        if (result >= 0)
            result = removed;
    }
    return result;
}

/* Copies the attributes of the folder that will be replaced, and gives its lists to the temporary one; if
 * there is none, takes those of a new folder. */
static int set_attributes(struct target *t, enum target_occupant what, struct error *e)
{
    const struct file_system *files = target_files(t);
    char name[2 * PATH_MAX];

    if (what == TARGET_NOTHING) {
        int result = attributes_of_new(files, t->folder, t->output_mode, &t->attributes);
        if (result < 0)
            return cannot_write(t, result, e);
    } else {
        int folder = files->open_folder(files->context, t->parent, t->entry.final);
        int result =
            folder < 0 ? folder : attributes_copy(files, folder, t->folder, &t->attributes);
        target_close_one(t, &folder);
        if (result < 0)
            return error_set(
                e, ERROR_REFUSED,
                "target folder %s has an owner, a group, a mode or an access-control "
                "list that torusd cannot give to the new folder in its place: %s. Remove the "
                "folder, and the result gets the attributes of a new one (output_mode)",
                target_full_name(t, name), strerror(-result));
    }
    t->has_attributes = true;
    return 0;
}

/* Checks that target_place() will be possible, and that no other exchange writes to this target. */
static int check_prospects(struct target *t, struct error *e)
{
    char name[2 * PATH_MAX];
    enum target_occupant what;

    if (target_check_rivals(t, e) != 0 || target_check_free(t, &what, e) != 0 ||
        set_attributes(t, what, e) != 0)
        return -1;
    int result = what == TARGET_OLD_RESULT ? try_swap(t) : 0;
    if (result < 0)
        return error_set(e, ERROR_REFUSED,
                         "target folder %s cannot be replaced atomically on its file system: %s. "
                         "Remove the folder first",
                         target_full_name(t, name), strerror(-result));
    return 0;
}

int target_prepare(struct target *t, const struct place *place, uint32_t rank, bool replace,
                   struct error *e)
{
    enum target_occupant what;
    unsigned missing;
    int result = -ENOENT;

    if (!journal_id_is_valid(t->id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", t->id);
    t->entry.replaces = replace;
    if (target_set_names(t, place, rank, e) != 0)
        return -1;
    t->use = made_folders_enter(t->made, t->roots, &t->above);
    if (t->use == NULL)
        return error_set(e, ERROR_MEMORY, "out of memory for a target");
    for (int i = 0; result == -ENOENT && i < ATTEMPTS; i++) {
        target_close_one(t, &t->parent);
        t->parent = target_open_existing(t, &missing);
        if (t->parent < 0) {
            result = t->parent;
            break;
        }
        if (target_check_above(t, e) != 0 || (missing == 0 && target_check_free(t, &what, e) != 0))
            return -1;
        if (!t->has_entry || missing > t->entry.made) {
            t->entry.made = missing;
            t->has_entry = true; /* a part of the entry may exist even if the next call fails */
            if (journal_write(t->journal, t->id, &t->entry, e) != 0)
                return error_wrap(e, "state folder");
        }
        t->entry.made = missing;
        result = make_temporary(t);
    }
    if (result < 0)
        return cannot_write(t, result, e);
    return check_prospects(t, e);
}
