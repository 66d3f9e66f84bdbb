#include "daemon/torusd/files/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/disk/staging.h"

#define AGAIN "start the exchange again"

struct target_name target_name(uint32_t origin)
{
    struct target_name name;

    (void)snprintf(name.text, sizeof name.text, "%u", origin);
    return name;
}

/* Whether a file of a result can have this name. */
static bool is_result_name(const char *name)
{
    size_t digits = strspn(name, "0123456789");

    return digits > 0 && digits <= 10 && name[digits] == '\0';
}

/* --- errors --- */

static const char *reason(int result)
{
    return result == -ESTALE ? "another process has moved or replaced it" : strerror(-result);
}

/* Fills *e: what has this name in the staging ("": the staging itself) cannot be `done`. Returns -1. */
static int failed(const struct target *t, const char *name, const char *done, int result,
                  struct error *e)
{
    return error_set(e, ERROR_IO, "%s%s%s cannot be %s: %s", t->staging.shown,
                     name[0] != '\0' ? "/" : "", name, done, reason(result));
}

static int cannot_install(const struct target *t, int result, struct error *e)
{
    return error_set(e, ERROR_IO, "%s cannot be renamed to %s: %s", t->staging.shown,
                     t->staging.target, reason(result));
}

/* Fills *e for a target that cannot be made. */
static int cannot_make(const struct target *t, int result, struct error *e)
{
    if (result == -ELOOP)
        return error_set(e, ERROR_REFUSED,
                         "a folder above target %s is a symbolic link, and torusd creates no "
                         "targets through links: name the folder that the link leads to",
                         t->staging.path);
    return error_set(e, ERROR_IO, "target %s cannot be written: %s", t->staging.path,
                     reason(result));
}

static int refused(const struct target *t, const char *why, int result, struct error *e)
{
    return error_set(e, ERROR_REFUSED, "target %s %s: %s", t->staging.path, why, strerror(-result));
}

static int sync_above(const struct target *t, struct error *e)
{
    int result = target_files(t)->sync(target_files(t)->context, t->staging.above);

    return result == 0 ? 0
                       : error_set(e, ERROR_IO, "%s cannot be synced: %s", t->entry.folder,
                                   strerror(-result));
}

/* --- the staging --- */

struct removing {
    const struct target *t;
    int error;
};

static void remove_file(void *argument, const char *name)
{
    struct removing *r = argument;
    const struct file_system *files = target_files(r->t);
    int result =
        is_result_name(name) ? files->remove_file(files->context, r->t->staging.folder, name) : 0;

    if (result < 0 && r->error == 0)
        r->error = result;
}

/* Removes the open folder that has the name of the staging, with its files. Returns 0 or -errno. */
static int remove_staging(const struct target *t)
{
    const struct file_system *files = target_files(t);
    struct removing r = {t, 0};
    int result = files->list(files->context, t->staging.folder, remove_file, &r);

    if (result == 0)
        result = r.error;
    if (result == 0)
        result = attributes_clean_up(files, t->staging.folder);
    return result < 0 ? result : staging_remove_folder(&t->staging);
}

/* Removes the journal's entry. To be called last. */
static void forget(struct target *t)
{
    if (t->has_entry)
        journal_remove(t->journal, t->id);
    t->has_entry = false;
}

/* --- whether the files are those that torusd has written --- */

uint64_t target_stamp_of(uint32_t origin, const struct file_status *status)
{
    return file_stamp(origin, status->number, status->size, status->changed);
}

int target_file_differs(const struct target *t, const char *name, enum file_kind kind,
                        struct error *e)
{
    static const mode_t modes[] = {
        [FILE_REGULAR] = S_IFREG, [FILE_FOLDER] = S_IFDIR, [FILE_LINK] = S_IFLNK, [FILE_OTHER] = 0};
    char path[sizeof t->staging.shown + NAME_MAX + 1];

    (void)snprintf(path, sizeof path, "%s/%s", t->staging.shown, name);
    return kind == FILE_REGULAR && is_result_name(name)
               ? file_stamp_changed(path, AGAIN, e)
               : file_stamp_refuse(path, modes[kind], AGAIN, e);
}

struct adding {
    const struct target *t;
    uint64_t sum;
    struct error *error;
    bool failed;
};

static void add_file(void *argument, const char *name)
{
    struct adding *a = argument;
    const struct file_system *files = target_files(a->t);
    struct file_status status;

    if (a->failed)
        return;
    int result = files->status_at(files->context, a->t->staging.folder, name, &status);
    a->failed = result < 0 || status.kind != FILE_REGULAR || !is_result_name(name);
    if (result < 0)
        (void)failed(a->t, name, "examined", result, a->error);
    else if (a->failed)
        (void)target_file_differs(a->t, name, status.kind, a->error);
    else
        a->sum += target_stamp_of((uint32_t)strtoul(name, NULL, 10), &status);
}

int target_contents(const struct target *t, uint64_t *contents, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct adding a = {.t = t, .error = e};
    int result = files->list(files->context, t->staging.folder, add_file, &a);

    if (result < 0)
        return failed(t, "", "read", result, e);
    *contents = a.sum | 1; /* never 0 */
    return a.failed ? -1 : 0;
}

/* Compares the sum of the stamps. Returns 0, or -1 with *e, which says what to remove. */
static int check_contents(const struct target *t, uint64_t contents, struct error *e)
{
    uint64_t now;

    if (target_contents(t, &now, e) != 0)
        return -1;
    if (now == (contents | 1))
        return 0;
    return error_set(e, ERROR_DAMAGED,
                     "somebody has changed files in %s after they had arrived: remove it, "
                     "and " AGAIN,
                     t->staging.shown);
}

/* --- the life of a target --- */

void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 struct made_folders *made, mode_t output_mode, const char *id)
{
    *t = (struct target){.staging = {.roots = roots,
                                     .made = made,
                                     .output_mode = output_mode,
                                     .above = -1,
                                     .folder = -1},
                         .journal = journal};
    (void)snprintf(t->id, sizeof t->id, "%s", id);
}

int target_open(const struct target *t, uint32_t origin, bool make, struct error *e)
{
    const struct file_system *files = target_files(t);
    const struct target_name name = target_name(origin);
    int file = make ? files->create_file(files->context, t->staging.folder, name.text,
                                         t->attributes.file_mode)
                    : files->reopen_file(files->context, t->staging.folder, name.text);
    int result = file < 0 ? file : make ? attributes_set_file(files, file, &t->attributes) : 0;

    if (result >= 0)
        return file;
    file_system_close(files, &file);
    return failed(t, name.text, make ? "created" : "opened again", result, e);
}

int target_remove_file(const struct target *t, uint32_t origin, struct error *e)
{
    const struct file_system *files = target_files(t);
    int result = files->remove_file(files->context, t->staging.folder, target_name(origin).text);

    return result == 0 ? 0 : failed(t, target_name(origin).text, "removed", result, e);
}

int target_seal(struct target *t, uint64_t contents, struct error *e)
{
    const struct file_system *files = target_files(t);

    if (check_contents(t, contents, e) != 0)
        return -1;
    int result = files->sync(files->context, t->staging.folder);
    if (result < 0)
        return failed(t, "", "synced", result, e);
    if (sync_above(t, e) != 0)
        return -1;
    t->entry.finished = true;
    t->entry.contents = contents | 1;
    return journal_write(t->journal, t->id, &t->entry, e);
}

/* The names are those of the entry. */
static void take_names(struct target *t)
{
    char path[sizeof t->staging.path];

    (void)snprintf(path, sizeof path, "%s/%s", t->entry.folder, t->entry.final);
    (void)strcpy(t->staging.target, t->entry.final);
    staging_set_path(&t->staging, path);
    staging_set_name(&t->staging, t->entry.temporary);
}

/* Names the target and its staging. Returns 0, or -1 with *e: the name is too long. */
static int name_staging(struct target *t, const char *name, uint32_t rank, struct error *e)
{
    int n = snprintf(t->entry.temporary, sizeof t->entry.temporary, ".%s.torusd-%s-%u", name, t->id,
                     rank);

    if (n >= 0 && (size_t)n < sizeof t->entry.temporary && strlen(name) <= NAME_MAX) {
        (void)strcpy(t->entry.final, name);
        take_names(t);
        return 0;
    }
    return error_set(e, ERROR_USAGE,
                     "target name is too long: %zu bytes, at most %zu are possible, because the "
                     "name of its temporary folder is longer: %.60s...",
                     strlen(name), sizeof t->entry.temporary - 1 - ((size_t)n - strlen(name)),
                     name);
}

/* The journal has an entry for each of the two names, so that the staging has an entry after a power failure, whatever its
 * name. */
static int rename_staging(struct target *t, const struct target *former, struct error *e)
{
    const struct file_system *files = target_files(t);
    int result = staging_check_open(&former->staging);

    if (result == 0 && journal_write(t->journal, t->id, &t->entry, e) != 0)
        return error_wrap(e, "state folder");
    if (result == 0)
        result =
            files->rename(files->context, t->staging.above, former->staging.name, t->staging.name);
    return result < 0 ? failed(former, "", "renamed", result, e) : 0;
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
    if (name_staging(t, former.entry.final, rank, e) != 0 || rename_staging(t, &former, e) != 0) {
        journal_remove(t->journal, t->id);
        *t = former;
        return -1;
    }
    int result = sync_above(t, e);
    journal_remove(t->journal, former.id);
    return result;
}

int target_discard(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    int result = t->staging.folder >= 0 ? remove_staging(t) : 0;

    file_system_close(files, &t->staging.folder);
    if (result == 0)
        staging_remove_made(&t->staging, t->entry.made);
    if (result == 0 && t->has_entry && t->staging.above >= 0)
        result = files->sync(files->context, t->staging.above);
    if (result == -ESTALE) {
        log_warning("another process has moved or replaced %s: torusd does not touch it",
                    t->staging.shown);
        result = 0;
    }
    if (result < 0)
        (void)error_set(e, ERROR_IO, "%s cannot be removed: %s; torusd tries again",
                        t->staging.shown, strerror(-result));
    else
        forget(t);
    staging_close(&t->staging);
    return result < 0 ? -1 : 0;
}

int target_reopen(struct target *t, struct error *e)
{
    struct staging *s = &t->staging;

    if (journal_read(t->journal, t->id, &t->entry, e) != 0)
        return -1;
    t->has_entry = true;
    take_names(t);
    if (roots_find(s->roots, t->entry.folder, &s->place, e) != 0)
        return error_wrap(e, "output of exchange %s", t->id);
    int result = s->above = roots_open_folder(s->roots, &s->place, s->place.path);
    if (result >= 0)
        result = s->folder =
            target_files(t)->open_folder(target_files(t)->context, s->above, s->name);
    return result < 0 && result != -ENOENT ? failed(t, "", "opened", result, e) : 0;
}

/* --- what is at the target --- */

struct checking {
    const struct target *t;
    int folder;
    struct error *error;
    bool failed;
};

static void check_old(void *argument, const char *name)
{
    struct checking *c = argument;
    const struct file_system *files = target_files(c->t);
    struct file_status status;
    const char *why = "cannot be examined";

    if (c->failed)
        return;
    int result = files->status_at(files->context, c->folder, name, &status);
    if (result == 0 && (status.kind != FILE_REGULAR || !is_result_name(name))) {
        c->failed = true;
        (void)error_set(c->error, ERROR_REFUSED,
                        "target folder %s contains %s, which is not a file of a result (their "
                        "names are ranks): only a result can be replaced",
                        c->t->staging.path, name);
        return;
    }
    if (result == 0)
        result = files->check_removable(files->context, c->folder, name, &why);
    c->failed = result < 0;
    if (c->failed)
        (void)error_set(c->error, ERROR_REFUSED,
                        "target folder %s cannot be replaced, because %s in it %s: %s",
                        c->t->staging.path, name, why, strerror(-result));
}

static void note_any(void *argument, const char *name)
{
    (void)name;
    *(bool *)argument = true;
}

enum occupant { NOTHING, EMPTY, OLD_RESULT };

static int cannot_read(const struct target *t, int result, struct error *e)
{
    return error_set(e, ERROR_IO, "target %s cannot be read: %s", t->staging.path,
                     strerror(-result));
}

/* Finds out what the open folder at the target contains. */
static int look_into(const struct target *t, int folder, enum occupant *what, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct checking c = {.t = t, .folder = folder, .error = e};
    const char *why = "";
    bool any = false;
    int result = files->check_removable(files->context, t->staging.above, t->staging.target, &why);

    if (result < 0)
        return refused(t, why, result, e);
    result = files->list(files->context, folder, note_any, &any);
    if (result < 0)
        return cannot_read(t, result, e);
    if (any && !t->entry.replaces)
        return error_set(
            e, ERROR_REFUSED,
            "target folder %s exists and is not empty; --replace replaces an old result",
            t->staging.path);
    result = files->check_writable(files->context, folder);
    if (result < 0)
        return error_set(e, ERROR_REFUSED, "torusd cannot write to target folder %s: %s",
                         t->staging.path, strerror(-result));
    *what = any ? OLD_RESULT : EMPTY;
    if (any)
        result = files->list(files->context, folder, check_old, &c);
    return result < 0 ? cannot_read(t, result, e) : c.failed ? -1 : 0;
}

/* Checks that the target is absent, an empty folder, or an old result that may be replaced, and that nothing can keep the
 * new folder from its place. Returns 0 with *what, or -1 with *e. */
static int check_free(const struct target *t, enum occupant *what, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct file_status status;
    int result = files->status_at(files->context, t->staging.above, t->staging.target, &status);

    *what = NOTHING;
    if (result == -ENOENT)
        return 0;
    if (result == 0 && status.kind != FILE_FOLDER)
        return error_set(e, ERROR_REFUSED, "target %s exists and is not a folder", t->staging.path);
    int folder = result < 0
                     ? result
                     : files->open_folder(files->context, t->staging.above, t->staging.target);
    if (folder < 0)
        return cannot_read(t, folder, e);
    result = look_into(t, folder, what, e);
    file_system_close(files, &folder);
    return result;
}

/* As staging.check_above: notes in the journal, too, what will be made. */
static int check_above(struct staging *s, unsigned missing, struct error *e)
{
    struct target *t = (struct target *)s;
    enum occupant what;
    const char *why = "";
    int result = target_files(t)->check_removable(target_files(t)->context, s->above, NULL, &why);

    if (result < 0)
        return refused(t, why, result, e);
    if (missing == 0 && check_free(t, &what, e) != 0)
        return -1;
    if (!t->has_entry || missing > t->entry.made) {
        t->entry.made = missing;
        t->has_entry = true; /* a part of the entry may exist even if the next call fails */
        if (journal_write(t->journal, t->id, &t->entry, e) != 0)
            return error_wrap(e, "state folder");
    }
    t->entry.made = missing;
    return 0;
}

/* As in staging_check_rivals(); `id` ends with the node's rank. */
static bool is_in_doubt(const struct staging *s, const char *id, const char *name)
{
    const struct target *t = (const struct target *)s;
    const char *end = strrchr(id, '-');
    struct journal_entry entry;
    char other[sizeof t->id];
    struct error e;

    if (end == NULL || (size_t)(end - id) >= sizeof other)
        return false;
    (void)snprintf(other, sizeof other, "%.*s", (int)(end - id), id);
    return journal_id_is_valid(other) && journal_read(t->journal, other, &entry, &e) == 0 &&
           entry.finished && strcmp(entry.temporary, name) == 0 &&
           strcmp(entry.folder, t->entry.folder) == 0;
}

/* --- preparing --- */

int target_find(struct target *t, const char *path, uint32_t rank, struct error *e)
{
    struct staging *s = &t->staging;
    struct location place;
    int n;

    if (!journal_id_is_valid(t->id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", t->id);
    if (roots_find_target(s->roots, path, &place, e) != 0)
        return -1;
    const char *root = s->roots->path[place.root], *name = location_split(&place, &s->place);
    if (strcmp(s->place.path, ".") == 0)
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s", root);
    else
        n = snprintf(t->entry.folder, sizeof t->entry.folder, "%s/%s",
                     strcmp(root, "/") == 0 ? "" : root, s->place.path);
    if (n < 0 || (size_t)n >= sizeof t->entry.folder)
        return error_set(e, ERROR_USAGE,
                         "target path is too long: %d bytes, at most %zu are possible: %.60s...", n,
                         sizeof t->entry.folder - 1, place.path);
    return name_staging(t, name, rank, e);
}

/* Tries with two files whether the file system can exchange two names. Returns 0 or -errno. */
static int try_swap(const struct target *t)
{
    static const char *const name[] = {"0", "1"}; /* target_discard() would remove them */
    const struct file_system *files = target_files(t);
    int result = 0;

    for (unsigned i = 0; i < 2 && result >= 0; i++) {
        int file = files->create_file(files->context, t->staging.folder, name[i], 0600);
        result = file;
        file_system_close(files, &file);
    }
    if (result >= 0)
        result = files->swap(files->context, t->staging.folder, name[0], name[1]);
    for (unsigned i = 0; i < 2; i++) {
        int removed = files->remove_file(files->context, t->staging.folder, name[i]);
        if (result >= 0)
            result = removed;
    }
    return result;
}

/* Copies the attributes of the folder that will be replaced, and gives its lists to the staging; if there is none, takes
 * those of a new folder. */
static int set_attributes(struct target *t, enum occupant what, struct error *e)
{
    const struct file_system *files = target_files(t);

    if (what == NOTHING) {
        int result =
            attributes_of_new(files, t->staging.folder, t->staging.output_mode, &t->attributes);
        if (result < 0)
            return cannot_make(t, result, e);
    } else {
        int folder = files->open_folder(files->context, t->staging.above, t->staging.target);
        int result =
            folder < 0 ? folder : attributes_copy(files, folder, t->staging.folder, &t->attributes);
        file_system_close(files, &folder);
        if (result < 0)
            return error_set(
                e, ERROR_REFUSED,
                "target folder %s has an owner, a group, a mode or an access-control "
                "list that torusd cannot give to the new folder in its place: %s. Remove the "
                "folder, and the result gets the attributes of a new one (output_mode)",
                t->staging.path, strerror(-result));
    }
    t->has_attributes = true;
    return 0;
}

/* Checks that target_install() will be possible, and that nobody else writes to this target. */
static int check_prospects(struct target *t, struct error *e)
{
    enum occupant what;

    if (staging_check_rivals(&t->staging, t->id, is_in_doubt, e) != 0 ||
        check_free(t, &what, e) != 0 || set_attributes(t, what, e) != 0)
        return -1;
    int result = what == OLD_RESULT ? try_swap(t) : 0;
    if (result < 0)
        return error_set(e, ERROR_REFUSED,
                         "target folder %s cannot be replaced atomically on its file system: %s. "
                         "Remove the folder first",
                         t->staging.path, strerror(-result));
    return 0;
}

int target_prepare(struct target *t, bool replace, struct error *e)
{
    struct staging *s = &t->staging;

    t->entry.replaces = replace;
    s->check_above = check_above;
    int result = staging_open_above(s, e);
    if (result == 0)
        result = staging_make(s, e);
    if (result == 0 && (s->folder = staging_lock(s, s->name)) < 0) {
        result = s->folder;
        (void)target_files(t)->remove_folder(target_files(t)->context, s->above, s->name);
    }
    if (result != 0)
        return result < 0 ? cannot_make(t, result, e) : -1;
    return check_prospects(t, e);
}

/* --- installing --- */

/* Determines the attributes again after a restart: those of the folder at the target or, if there is none, of a new
 * folder. */
static int find_attributes(struct target *t)
{
    const struct file_system *files = target_files(t);
    struct file_status status;
    int result;

    if (t->has_attributes)
        return 0;
    result = attributes_of_new(files, t->staging.folder, t->staging.output_mode, &t->attributes);
    if (result == 0)
        result = files->status_at(files->context, t->staging.above, t->staging.target, &status);
    if (result == 0) {
        t->attributes.mode = status.mode; /* the staging has its lists already */
        t->attributes.owner = status.owner;
        t->attributes.group = status.group;
    }
    t->has_attributes = result == 0 || result == -ENOENT;
    return t->has_attributes ? 0 : result;
}

/* Gives the staging its final attributes. Returns 0 or -errno. */
static int open_staging(struct target *t)
{
    const struct file_system *files = target_files(t);
    int result = find_attributes(t);

    if (result == 0)
        result = attributes_set(files, t->staging.folder, &t->attributes);
    return result > 0 ? files->sync(files->context, t->staging.folder) : result;
}

/* Exchanges the names of the new and the old folder. Afterwards t->staging.folder is the old one. */
static int swap_folders(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct file_status fresh, old;
    int result = files->status(files->context, t->staging.folder, &fresh);

    if (result == 0)
        result = files->status_at(files->context, t->staging.above, t->staging.target, &old);
    if (result < 0)
        return cannot_install(t, result, e);
    t->entry.new_number = fresh.number;
    t->entry.old_number = old.number;
    if (journal_write(t->journal, t->id, &t->entry, e) != 0)
        return error_wrap(e, "state folder");
    result = files->swap(files->context, t->staging.above, t->staging.name, t->staging.target);
    if (result < 0)
        return cannot_install(t, result, e);
    file_system_close(files, &t->staging.folder);
    t->staging.folder = files->open_folder(files->context, t->staging.above, t->staging.name);
    t->old_result_remains = t->staging.folder < 0;
    return 0;
}

/* Whether a crash has left the new result in place and the old one under the name of the staging. Returns 1, 0, or -1
 * with *e. */
static int is_swapped(const struct target *t, struct error *e)
{
    const struct journal_entry *entry = &t->entry;
    struct file_status status;

    if (entry->old_number == 0)
        return 0;
    int result = target_files(t)->status(target_files(t)->context, t->staging.folder, &status);
    if (result < 0)
        return cannot_install(t, result, e);
    if (status.number == entry->old_number || status.number == entry->new_number)
        return status.number == entry->old_number;
    return error_set(e, ERROR_IO,
                     "torusd cannot tell which of %s and %s is the new result, and touches neither",
                     t->staging.shown, entry->final);
}

/* Checks that the files are those that were complete. Returns 0, or -1 with *e. */
static int check_recorded(const struct target *t, struct error *e)
{
    if (t->entry.contents != 0)
        return check_contents(t, t->entry.contents, e);
    file_stamp_warn_of_none(t->staging.shown);
    return 0;
}

/* Returns 0, or -1 with *e. t->staging.folder is open if an old result must be removed. */
static int put_in_place(struct target *t, struct error *e)
{
    const struct file_system *files = target_files(t);
    struct error obstacle;
    enum occupant what;
    int result = is_swapped(t, e);

    if (result != 0)
        return result < 0 ? -1 : 0;
    result = staging_check_open(&t->staging);
    if (result < 0)
        return cannot_install(t, result, e);
    if (check_recorded(t, e) != 0)
        return -1;
    if (check_free(t, &what, &obstacle) != 0)
        return error_set(e, obstacle.code, "%s; the complete output is kept as %s", obstacle.text,
                         t->entry.temporary);
    result = open_staging(t);
    if (result == 0 && what == OLD_RESULT)
        return swap_folders(t, e);
    if (result == 0)
        result =
            files->rename(files->context, t->staging.above, t->staging.name, t->staging.target);
    if (result < 0)
        return cannot_install(t, result, e);
    file_system_close(files, &t->staging.folder);
    return 0;
}

/* Removes the old result. If that fails, the new one is in place nevertheless. */
static void remove_old(struct target *t)
{
    const struct file_system *files = target_files(t);
    int result = remove_staging(t);

    if (result == 0)
        result = files->sync(files->context, t->staging.above);
    file_system_close(files, &t->staging.folder);
    t->old_result_remains = result < 0;
    if (result < 0)
        log_warning(
            "%s, the old result that %s has replaced, cannot be removed: %s; torusd tries again",
            t->staging.shown, t->staging.target, strerror(-result));
}

int target_install(struct target *t, struct error *e)
{
    if ((t->staging.folder >= 0 && put_in_place(t, e) != 0) ||
        (t->staging.above >= 0 && sync_above(t, e) != 0))
        return -1;
    if (t->staging.folder >= 0)
        remove_old(t);
    if (!t->old_result_remains)
        forget(t);
    staging_leave(&t->staging, true);
    return 0;
}
