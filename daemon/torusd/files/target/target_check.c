#include "daemon/torusd/files/target/target_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/torusd/files/target/old_result.h"
#include "daemon/torusd/files/target/target_names.h"

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

int target_check_above(const struct target *t, struct error *e)
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
    struct error error;
};

static bool is_locked(const struct target *t, const char *name)
{
    const struct file_system *files = target_files(t);
    int folder = files->open_folder(files->context, t->parent, name);
    bool locked = folder >= 0 && files->lock(files->context, folder) == -EWOULDBLOCK;

    target_close_one(t, &folder);
    return locked;
}

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
    size_t stem = strlen(r->stem), id = strlen(r->t->id);

    if (r->error.code != ERROR_NONE || strncmp(name, r->stem, stem) != 0 ||
        strcmp(name, entry->temporary) == 0)
        return;
    if (strncmp(name + stem, r->t->id, id) == 0 && name[stem + id] == '-')
        (void)error_set(&r->error, ERROR_REFUSED,
                        "target %s/%s is also the target of another node: put %%r (the node's "
                        "rank) into its path",
                        entry->folder, entry->final);
    else if (is_locked(r->t, name))
        (void)error_set(&r->error, ERROR_BUSY, "another exchange is writing to target %s/%s",
                        entry->folder, entry->final);
    else if (is_in_doubt(r->t, name + stem, name))
        (void)error_set(&r->error, ERROR_BUSY,
                        "target %s/%s is kept for an exchange whose outcome is in doubt: %s",
                        entry->folder, entry->final, name);
}

int target_check_rivals(const struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct rivals r = {.t = t};

    int n = snprintf(r.stem, sizeof r.stem, ".%s.torusd-", t->entry.final);
    if (n < 0 || (size_t)n >= sizeof r.stem)
        return target_name_too_long(t->entry.final, (size_t)n, sizeof r.stem, e);
    int result = files->list(files->context, t->parent, note_rival, &r);
    if (result < 0)
        return error_set(e, ERROR_IO, "%s cannot be read: %s", t->entry.folder, strerror(-result));
    if (r.error.code == ERROR_NONE)
        return 0;
    *e = r.error;
    return -1;
}
