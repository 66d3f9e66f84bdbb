#include "daemon/torusd/files/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/torusd/disk/beside.h"
#include "daemon/torusd/disk/file_system.h"
#include "proto/error.h"

/* --- old results --- */

struct check {
    const struct file_system *files;
    int folder;
    const char *path;
    struct error *error;
    bool failed;
};

bool old_result_is_name(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return digits > 0 && digits <= 10 && name[digits] == '\0';
}

static void check_entry(void *argument, const char *name)
{
    struct check *c = argument;
    const struct file_system *files = c->files;
    struct file_status status;
    const char *why = "cannot be examined";

    if (c->failed)
        return;
    int result = files->status_at(files->context, c->folder, name, &status);
    if (result == 0 && (status.kind != FILE_REGULAR || !old_result_is_name(name))) {
        c->failed = true;
        (void)error_set(c->error, ERROR_REFUSED,
                        "target folder %s contains %s, which is not a file of a result (their "
                        "names are ranks): only a result can be replaced",
                        c->path, name);
        return;
    }
    if (result == 0)
        result = files->check_removable(files->context, c->folder, name, &why);
    c->failed = result < 0;
    if (c->failed)
        (void)error_set(c->error, ERROR_REFUSED,
                        "target folder %s cannot be replaced, because %s in it %s: %s", c->path,
                        name, why, strerror(-result));
}

/* Checks that everything in the open folder belongs to a result and can be removed. `path` is that of the
 * folder, for *e. Returns 0, or -1 with *e. */
static int old_result_check(const struct file_system *files, int folder, const char *path,
                            struct error *e)
{
    struct check c = {.files = files, .folder = folder, .path = path, .error = e};
    int result = files->list(files->context, folder, check_entry, &c);

    if (result < 0)
        return error_set(e, ERROR_IO, "target folder %s cannot be read: %s", path,
                         strerror(-result));
    return c.failed ? -1 : 0;
}

/* --- names --- */

/* Writes the path of the target, with its final name, to `name`. Returns `name`. */
static const char *target_full_name(const struct target *t, char name[2 * PATH_MAX])
{
    (void)snprintf(name, 2 * PATH_MAX, "%s/%s", t->entry.folder, t->entry.final);
    return name;
}

/* Fills *e with an error: the temporary name that is made from `name` has `length` bytes, which do not fit
 * into `size`. Returns -1. */
static int target_name_too_long(const char *name, size_t length, size_t size, struct error *e)
{
    size_t added = length - strlen(name);

    return error_set(e, ERROR_USAGE,
                     "target name is too long: %zu bytes, at most %zu are possible, because the "
                     "name of its temporary folder is longer: %.60s...",
                     strlen(name), size - 1 - added, name);
}

int target_set_temporary(struct target *t, const char *name, uint32_t rank, struct error *e)
{
    int n = snprintf(t->entry.temporary, sizeof t->entry.temporary, ".%s.torusd-%s-%u", name, t->id,
                     rank);

    if (n < 0 || (size_t)n >= sizeof t->entry.temporary || strlen(name) > NAME_MAX)
        return target_name_too_long(name, (size_t)n, sizeof t->entry.temporary, e);
    return 0;
}

/* Fills in all names of a target at `place`. Returns 0, or -1 with *e: one is too long. */
static int target_set_names(struct target *t, const struct location *place, uint32_t rank,
                            struct error *e)
{
    const char *root = t->roots->path[place->root];
    const char *slash = strrchr(place->path, '/'), *name = slash != NULL ? slash + 1 : place->path;
    int n;

    t->above = *place;
    (void)strcpy(t->above.path + (slash != NULL ? slash - place->path : 0),
                 slash != NULL ? "" : ".");
    if (target_set_temporary(t, name, rank, e) != 0)
        return -1;
    memcpy(t->entry.final, name, strlen(name) + 1);
    if (strcmp(t->above.path, ".") == 0)
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s", root);
    else
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s/%s",
                     strcmp(root, "/") == 0 ? "" : root, t->above.path);
    if (n < 0 || (size_t)n >= sizeof t->entry.folder)
        return error_set(e, ERROR_USAGE,
                         "target path is too long: %d bytes, at most %zu are possible: %.60s...", n,
                         sizeof t->entry.folder - 1, place->path);
    return 0;
}

/* --- obstacles --- */

static void note_any(void *argument, const char *name)
{
    (void)name;
    *(bool *)argument = true;
}

/* Finds out what the open folder under the final name contains. */
static int look_into(const struct target *t, int folder, enum target_occupant *what,
                     struct error *e)
{
    const struct file_system *files = target_files(t);
    char name[2 * PATH_MAX];
    const char *why = "";
    bool any = false;
    int result = files->check_removable(files->context, t->parent, t->entry.final, &why);

    if (result < 0)
        return error_set(e, ERROR_REFUSED, "target %s %s: %s", target_full_name(t, name), why,
                         strerror(-result));
    result = files->list(files->context, folder, note_any, &any);
    if (result < 0)
        return error_set(e, ERROR_IO, "target %s cannot be read: %s", target_full_name(t, name),
                         strerror(-result));
    if (any && !t->entry.replaces)
        return error_set(
            e, ERROR_REFUSED,
            "target folder %s exists and is not empty; --replace replaces an old result",
            target_full_name(t, name));
    result = files->check_writable(files->context, folder);
    if (result < 0)
        return error_set(e, ERROR_REFUSED, "torusd cannot write to target folder %s: %s",
                         target_full_name(t, name), strerror(-result));
    *what = any ? TARGET_OLD_RESULT : TARGET_EMPTY;
    return any ? old_result_check(files, folder, target_full_name(t, name), e) : 0;
}

/* Checks that entries of the deepest existing folder, t->parent, can be removed again. Returns 0, or -1
 * with *e. */
static int target_check_above(const struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    const char *why = "";
    int result = files->check_removable(files->context, t->parent, NULL, &why);

    if (result < 0)
        return error_set(e, ERROR_REFUSED, "target %s/%s %s: %s", t->entry.folder, t->entry.final,
                         why, strerror(-result));
    return 0;
}

int target_check_free(const struct target *t, enum target_occupant *what, struct error *e)
{
    const struct file_system *files = target_files(t);
    const struct journal_entry *entry = &t->entry;
    struct file_status status;
    int result = files->status_at(files->context, t->parent, entry->final, &status);

    *what = TARGET_NOTHING;
    if (result == -ENOENT)
        return 0;
    if (result == 0 && status.kind != FILE_FOLDER)
        return error_set(e, ERROR_REFUSED, "target %s/%s exists and is not a folder", entry->folder,
                         entry->final);
    int folder = result < 0 ? result : files->open_folder(files->context, t->parent, entry->final);
    if (folder < 0)
        return error_set(e, ERROR_IO, "target %s/%s cannot be read: %s", entry->folder,
                         entry->final, strerror(-folder));
    result = look_into(t, folder, what, e);
    target_close_one(t, &folder);
    return result;
}

struct rivals {
    const struct target *t;
    char stem[NAME_MAX + 1]; /* beginning of all temporary names for this target */
    char copy[NAME_MAX + 1]; /* the folder of copies to this target */
    struct error error;
};

/* Whether an output of this node is complete, and waits to be put in place or removed; `id` ends with the
 * node's rank. */
static bool is_in_doubt(const struct target *t, const char *id, const char *name)
{
    const char *end = strrchr(id, '-');
    struct journal_entry entry;
    char copy[sizeof t->id];
    struct error e;

    if (end == NULL || (size_t)(end - id) >= sizeof copy)
        return false;
    (void)snprintf(copy, sizeof copy, "%.*s", (int)(end - id), id);
    return journal_id_is_valid(copy) && journal_read(t->journal, copy, &entry, &e) == 0 &&
           entry.finished && strcmp(entry.temporary, name) == 0 &&
           strcmp(entry.folder, t->entry.folder) == 0;
}

static void note_rival(void *argument, const char *name)
{
    struct rivals *r = argument;
    const struct journal_entry *entry = &r->t->entry;
    const struct file_system *files = target_files(r->t);
    size_t stem = strlen(r->stem), id = strlen(r->t->id);

    if (strcmp(name, r->copy) == 0 && beside_is_used(files, r->t->parent, name))
        (void)error_set(&r->error, ERROR_BUSY, "a copy is writing to target %s/%s", entry->folder,
                        entry->final);
    if (r->error.code != ERROR_NONE || strncmp(name, r->stem, stem) != 0 ||
        strcmp(name, entry->temporary) == 0)
        return;
    if (strncmp(name + stem, r->t->id, id) == 0 && name[stem + id] == '-')
        (void)error_set(&r->error, ERROR_REFUSED,
                        "target %s/%s is also the target of another node: put %%r (the node's "
                        "rank) into its path",
                        entry->folder, entry->final);
    else if (beside_is_used(files, r->t->parent, name))
        (void)error_set(&r->error, ERROR_BUSY, "another exchange is writing to target %s/%s",
                        entry->folder, entry->final);
    else if (is_in_doubt(r->t, name + stem, name))
        (void)error_set(&r->error, ERROR_BUSY,
                        "target %s/%s is kept for an exchange whose outcome is in doubt: %s",
                        entry->folder, entry->final, name);
}

/* Checks, after our own temporary folder has been made and locked, that no other daemon and no copy writes to the
 * target, and that it is not kept for an exchange in doubt. If two daemons check at the same time, at least
 * one sees the other. Returns 0, or -1 with *e. */
static int target_check_rivals(const struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct rivals r = {.t = t};

    int n = beside_name_exchanges(t->entry.final, r.stem);
    if (n < 0 || (size_t)n >= sizeof r.stem)
        return target_name_too_long(t->entry.final, (size_t)n, sizeof r.stem, e);
    beside_name_copy(t->entry.final, r.copy);
    int result = files->list(files->context, t->parent, note_rival, &r);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s cannot be read: %s", t->entry.folder, strerror(-result));
    if (r.error.code == ERROR_NONE)
        return 0;
    *e = r.error;
    return -1;
}

/* --- preparing --- */

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
    int result = made_folders_make(t->made, t->use, t->roots, &t->above, &t->parent, t->entry.made,
                                   t->output_mode);

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

/* Checks that target_install() will be possible, and that no other exchange writes to this target. */
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

int target_prepare(struct target *t, const struct location *place, uint32_t rank, bool replace,
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
        t->parent = made_folders_open(t->roots, &t->above, &missing);
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
