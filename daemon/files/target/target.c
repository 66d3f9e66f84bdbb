#include "daemon/files/target/target.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/files/target/old_result.h"
#include "daemon/files/target/target_parts.h"

#define ATTEMPTS 5 /* at making folders that others remove again */

void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 mode_t output_mode, const char *id)
{
    *t = (struct target){
        .roots = roots, .journal = journal, .parent = -1, .folder = -1, .output_mode = output_mode};
    (void)snprintf(t->id, sizeof t->id, "%s", id);
}

void target_close(struct target *t)
{
    close_one(t, &t->folder);
    close_one(t, &t->parent);
}

/* --- folders above the target --- */

/* Takes the last component off a path; "." remains where there is no other. Returns the component,
 * which lies in the same memory, or NULL if there is none. */
static char *cut_last(char *path)
{
    char *slash = strrchr(path, '/');

    if (slash != NULL) {
        *slash = '\0';
        return slash + 1;
    }
    return NULL;
}

/* Opens a folder of the target's root. */
static int open_above(const struct target *t, const char *path)
{
    return files_of(t)->open_folder(files_of(t)->context, roots_folder(t->roots, &t->above), path);
}

/* Opens the deepest folder above the target that exists; *missing is the number of those that do
 * not. */
static int open_existing(const struct target *t, unsigned *missing)
{
    char path[PATH_MAX];
    int folder;

    (void)strcpy(path, t->above.path);
    *missing = 0;
    while ((folder = open_above(t, path)) == -ENOENT && strcmp(path, ".") != 0) {
        if (cut_last(path) == NULL)
            (void)strcpy(path, ".");
        ++*missing;
    }
    return folder;
}

/* The part of a path that ends before its last `missing` components; "" for none of it. */
static const char *last_components(const char *path, unsigned missing)
{
    const char *at = path + strlen(path);

    while (missing > 0 && at > path)
        if (*--at == '/' && --missing == 0)
            return at + 1;
    return at;
}

/* A folder that was made above the target gets its mode. Returns 0 or -errno. */
static int open_new(const struct target *t, int folder)
{
    struct attributes a;
    int result = attributes_of_new(files_of(t), folder, t->output_mode, &a);

    if (result == 0)
        result = attributes_set(files_of(t), folder, &a);
    return result < 0 ? result : 0;
}

/* Makes the missing folders, each synced into the one above it; t->parent moves down. */
static int make_missing(struct target *t)
{
    const struct file_system *files = files_of(t);
    char names[PATH_MAX], *rest = names, *name;

    (void)strcpy(names, last_components(t->above.path, t->entry.made));
    while (t->entry.made > 0 && (name = strsep(&rest, "/")) != NULL) {
        int made = files->make_folder(files->context, t->parent, name, ATTRIBUTES_PRIVATE);
        if (made < 0 && made != -EEXIST)
            return made;
        int folder = files->open_folder(files->context, t->parent, name);
        if (folder < 0)
            return folder;
        int result = made == 0 ? open_new(t, folder) : 0;
        if (result == 0)
            result = sync_one(t, t->parent);
        if (result < 0) {
            close_one(t, &folder);
            return result;
        }
        close_one(t, &t->parent);
        t->parent = folder;
    }
    return 0;
}

/* Removes the folders that were made for the target, as far as they are empty. t->parent moves up
 * to the deepest that remains. */
static void remove_made(struct target *t)
{
    const struct file_system *files = files_of(t);
    char path[PATH_MAX];

    (void)strcpy(path, t->above.path);
    for (unsigned i = 0; i < t->entry.made && strcmp(path, ".") != 0; i++) {
        char *name = cut_last(path);
        int folder = open_above(t, name != NULL ? path : ".");
        int result = folder < 0
                         ? folder
                         : files->remove_folder(files->context, folder, name != NULL ? name : path);
        if (result < 0 && result != -ENOENT) {
            close_one(t, &folder);
            return;
        }
        if (folder >= 0) {
            close_one(t, &t->parent);
            t->parent = folder;
        }
        if (name == NULL)
            return;
    }
}

/* --- preparing --- */

static int set_temporary(struct target *t, const char *name, uint32_t rank, struct error *e)
{
    int n = snprintf(t->entry.temporary, sizeof t->entry.temporary, ".%s.torusd-%s-%u", name, t->id,
                     rank);

    if (n < 0 || (size_t)n >= sizeof t->entry.temporary || strlen(name) > NAME_MAX)
        return target_name_too_long(name, (size_t)n, sizeof t->entry.temporary, e);
    return 0;
}

static int set_names(struct target *t, const struct place *place, uint32_t rank, struct error *e)
{
    const char *root = t->roots->path[place->root];
    const char *name;
    int n;

    t->above = *place;
    name = cut_last(t->above.path);
    if (name == NULL) {
        name = place->path;
        (void)strcpy(t->above.path, ".");
    }
    if (set_temporary(t, name, rank, e) != 0)
        return -1;
    memcpy(t->entry.final, name, strlen(name) + 1);
    if (strcmp(t->above.path, ".") == 0)
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s", root);
    else
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s/%s",
                     strcmp(root, "/") == 0 ? "" : root, t->above.path);
    if (n < 0 || (size_t)n >= sizeof t->entry.folder)
        return error_set(e, ERROR_USAGE,
                         "path too long: %d bytes, at most %zu are possible: %.60s...", n,
                         sizeof t->entry.folder - 1, place->path);
    return 0;
}

static int cannot_write(const struct target *t, int result, struct error *e)
{
    if (result == -ELOOP)
        return error_set(e, ERROR_REFUSED,
                         "target %s/%s: a folder above it is a symbolic link, and targets are not "
                         "created through links; name the folder that it leads to",
                         t->entry.folder, t->entry.final);
    return error_set(e, ERROR_IO, "target %s/%s cannot be written: %s", t->entry.folder,
                     t->entry.final, strerror(-result));
}

/* Returns 0, or an error number: -ENOENT where somebody else has removed a folder meanwhile. */
static int make_temporary(struct target *t)
{
    const struct file_system *files = files_of(t);
    int result = make_missing(t);

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

/* Whether this file system can let two names change places, tried with two files. Returns 0 or
 * -errno. */
static int try_swap(const struct target *t)
{
    static const char *const name[] = {"0", "1"}; /* target_discard() would remove them */
    const struct file_system *files = files_of(t);
    int result = 0;

    for (unsigned i = 0; i < 2 && result >= 0; i++) {
        int file = files->create_file(files->context, t->folder, name[i], 0600);
        result = file;
        close_one(t, &file);
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

/* As the folder that is to be replaced has them, and the temporary one gets its lists; or as a new one
 * has them. */
static int set_attributes(struct target *t, enum target_occupant what, struct error *e)
{
    const struct file_system *files = files_of(t);
    char name[2 * PATH_MAX];

    if (what == TARGET_NOTHING) {
        int result = attributes_of_new(files, t->folder, t->output_mode, &t->attributes);
        if (result < 0)
            return cannot_write(t, result, e);
    } else {
        int folder = files->open_folder(files->context, t->parent, t->entry.final);
        int result =
            folder < 0 ? folder : attributes_copy(files, folder, t->folder, &t->attributes);
        close_one(t, &folder);
        if (result < 0)
            return error_set(e, ERROR_REFUSED,
                             "target folder %s has an owner, a group, a mode or an access-control "
                             "list that torusd cannot give to the new folder in its place: %s. "
                             "Remove it, and the result gets those of a new folder (output_mode)",
                             target_full_name(t, name), strerror(-result));
    }
    t->has_attributes = true;
    return 0;
}

/* What target_place() will do is possible, and nobody else does it. */
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
                         "target folder %s cannot be replaced at once on its file system: %s. "
                         "Remove it before",
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
    if (set_names(t, place, rank, e) != 0)
        return -1;
    for (int i = 0; result == -ENOENT && i < ATTEMPTS; i++) {
        close_one(t, &t->parent);
        t->parent = open_existing(t, &missing);
        if (t->parent < 0) {
            result = t->parent;
            break;
        }
        if (target_check_above(t, e) != 0 || (missing == 0 && target_check_free(t, &what, e) != 0))
            return -1;
        if (!t->noted || missing > t->entry.made) {
            t->entry.made = missing;
            t->noted = true; /* part of it may be there even if this fails */
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

int target_create(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int file =
        files_of(t)->create_file(files_of(t)->context, t->folder, text, t->attributes.file_mode);
    int result = file < 0 ? file : attributes_set_file(files_of(t), file, &t->attributes);
    if (result < 0) {
        close_one(t, &file);
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be created: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-result));
    }
    return file;
}

int target_reopen_file(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int file = files_of(t)->reopen_file(files_of(t)->context, t->folder, text);
    if (file < 0)
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be opened again: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-file));
    return file;
}

int target_remove_file(const struct target *t, uint32_t name, struct error *e)
{
    char text[16];

    (void)snprintf(text, sizeof text, "%u", name);
    int result = files_of(t)->remove_file(files_of(t)->context, t->folder, text);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s/%s cannot be removed: %s", t->entry.folder,
                         t->entry.temporary, text, strerror(-result));
    return 0;
}

int target_seal(struct target *t, struct error *e)
{
    int result = sync_one(t, t->folder);

    if (result == 0)
        result = sync_one(t, t->parent);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s cannot be synced: %s", t->entry.folder,
                         t->entry.temporary, strerror(-result));
    t->entry.finished = true;
    return journal_write(t->journal, t->id, &t->entry, e);
}

/* --- the end --- */

int target_check_temporary(const struct target *t)
{
    const struct file_system *files = files_of(t);
    struct file_status open, named;
    int result = files->status(files->context, t->folder, &open);

    if (result == 0)
        result = files->status_at(files->context, t->parent, t->entry.temporary, &named);
    if (result == 0 && (open.device != named.device || open.number != named.number))
        result = -ESTALE;
    return result == -ENOENT ? -ESTALE : result;
}

/* Whichever of both names the folder has when the power fails, there is an entry for it. */
static int rename_temporary(struct target *t, const struct target *former, struct error *e)
{
    const struct file_system *files = files_of(t);
    int result = target_check_temporary(former);

    if (result == 0 && journal_write(t->journal, t->id, &t->entry, e) != 0)
        return error_wrap(e, "state folder");
    if (result == 0)
        result =
            files->rename(files->context, t->parent, former->entry.temporary, t->entry.temporary);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s/%s cannot be renamed: %s", t->entry.folder,
                         former->entry.temporary,
                         result == -ESTALE ? "it has been moved or replaced by somebody else"
                                           : strerror(-result));
    return 0;
}

int target_rename(struct target *t, const char *id, uint32_t rank, struct error *e)
{
    const struct target former = *t;

    if (!journal_id_is_valid(id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", id);
    t->entry.finished = false;
    if (strcmp(t->id, id) == 0) /* it was begun once more before others had heard of it */
        return former.entry.finished ? journal_write(t->journal, id, &t->entry, e) : 0;
    (void)snprintf(t->id, sizeof t->id, "%s", id);
    if (set_temporary(t, t->entry.final, rank, e) != 0 || rename_temporary(t, &former, e) != 0) {
        journal_remove(t->journal, t->id);
        *t = former;
        return -1;
    }
    int result = sync_one(t, t->parent);
    journal_remove(t->journal, former.id);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s cannot be synced: %s", t->entry.folder,
                         strerror(-result));
    return 0;
}

void target_forget(struct target *t)
{
    if (t->noted)
        journal_remove(t->journal, t->id);
    t->noted = false;
}

struct removal {
    const struct target *t;
    int error;
};

static void remove_file(void *argument, const char *name)
{
    struct removal *r = argument;
    const struct file_system *files = files_of(r->t);
    int result =
        old_result_is_name(name) ? files->remove_file(files->context, r->t->folder, name) : 0;

    if (result < 0 && r->error == 0)
        r->error = result;
}

int target_remove_temporary(const struct target *t)
{
    const struct file_system *files = files_of(t);
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

int target_discard(struct target *t, struct error *e)
{
    int result = 0;

    if (t->folder >= 0)
        result = target_remove_temporary(t);
    close_one(t, &t->folder);
    if (result == 0 && t->entry.made > 0)
        remove_made(t);
    if (result == 0 && t->noted && t->parent >= 0)
        result = sync_one(t, t->parent);
    if (result == -ESTALE)
        log_warning("%s/%s has been moved or replaced by somebody else: it is left alone",
                    t->entry.folder, t->entry.temporary);
    else if (result < 0)
        (void)error_set(e, ERROR_IO, "%s/%s cannot be removed: %s; it is tried again",
                        t->entry.folder, t->entry.temporary, strerror(-result));
    if (result == 0 || result == -ESTALE)
        target_forget(t);
    target_close(t);
    return result == 0 || result == -ESTALE ? 0 : -1;
}

int target_reopen(struct target *t, struct error *e)
{
    const struct file_system *files = files_of(t);

    if (journal_read(t->journal, t->id, &t->entry, e) != 0)
        return -1;
    t->noted = true;
    if (roots_find(t->roots, t->entry.folder, &t->above, e) != 0)
        return error_wrap(e, "what exchange %s left behind", t->id);
    t->parent = open_above(t, t->above.path);
    if (t->parent >= 0)
        t->folder = files->open_folder(files->context, t->parent, t->entry.temporary);
    int result = t->parent < 0 ? t->parent : t->folder;
    if (result < 0 && result != -ENOENT)
        return error_set(e, ERROR_IO, "%s/%s cannot be opened: %s", t->entry.folder,
                         t->parent < 0 ? "" : t->entry.temporary, strerror(-result));
    return 0;
}
