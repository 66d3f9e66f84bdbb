#include "daemon/torusd/disk/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/lib/base/log.h"
#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/file_stamp.h"
#include "daemon/torusd/disk/names.h"

#define OUTPUT "exchange-"
#define DECISION "committed-"
#define NEXT ".next-" /* prefix of a file that is being written */
#define ID_MOST 100
#define NAME_SIZE (sizeof NEXT + NAME_MAX + 1)
#define ENTRY_MOST (sizeof(struct journal_entry) + 64)

static int state_file_failed(const struct journal *j, const char *name, const char *what,
                             int result, struct error *e)
{
    char path[PATH_MAX + NAME_SIZE];

    if (result != -ELOOP && result != -EISDIR)
        return error_set(e, ERROR_IO, "%s/%s cannot be %s: %s", j->path, name, what,
                         strerror(-result));
    (void)snprintf(path, sizeof path, "%s/%s", j->path, name);
    (void)file_stamp_refuse(path, result == -ELOOP ? S_IFLNK : S_IFDIR, "start torusd again", e);
    e->code = ERROR_IO; /* what the file would have said is not known */
    return -1;
}

bool journal_id_is_valid(const char *id)
{
    size_t length = strlen(id);

    return length > 0 && length <= ID_MOST &&
           strspn(id, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_") == length;
}

/* Calls each() for all names with a prefix, in order; it may remove files. Returns 0, or -1 with *e if not all names could be
 * read: then each() has not been called. */
static int each_name(const struct journal *j, const char *prefix,
                     void (*each)(void *context, const char *name), void *context, struct error *e)
{
    const size_t length = strlen(prefix);
    struct names names;
    const int result = names_list(&names, j->files, j->folder);

    for (size_t i = 0; i < names.count && result == 0; i++)
        if (strncmp(names_get(&names, i), prefix, length) == 0)
            each(context, names_get(&names, i) + length);
    names_free(&names);
    return result == 0 ? 0
                       : error_set(e, ERROR_IO, "state folder %s cannot be read completely: %s",
                                   j->path, strerror(-result));
}

/* --- the folder --- */

static void remove_unfinished(void *context, const char *name)
{
    const struct journal *j = context;
    char full[NAME_MAX + 1];

    (void)snprintf(full, sizeof full, NEXT "%.200s", name);
    (void)j->files->remove_file(j->files->context, j->folder, full);
}

/* Syncs the parent, so that a new folder survives a power failure. */
static int sync_parent(const struct journal *j)
{
    const struct file_system *files = j->files;
    char parent[PATH_MAX];
    int folder, result;

    (void)snprintf(parent, sizeof parent, "%s/..", j->path);
    folder = files->open_folder(files->context, FILE_SYSTEM_TOP, parent);
    if (folder < 0)
        return folder;
    result = files->sync(files->context, folder);
    files->close(files->context, folder);
    return result;
}

static int open_folder(struct journal *j, struct error *e)
{
    const struct file_system *files = j->files;
    int result = files->make_folder(files->context, FILE_SYSTEM_TOP, j->path, 0700);

    if (result < 0 && result != -EEXIST)
        return error_set(
            e, ERROR_IO,
            "state folder %s cannot be created: %s. Set another one by state_dir (--state-dir)",
            j->path, strerror(-result));
    if (result == 0 && (result = sync_parent(j)) < 0)
        return error_set(e, ERROR_IO, "%s/.. cannot be synced: %s", j->path, strerror(-result));
    j->folder = files->open_folder(files->context, FILE_SYSTEM_TOP, j->path);
    if (j->folder < 0)
        return error_set(e, ERROR_IO, "state folder %s cannot be opened: %s", j->path,
                         strerror(-j->folder));
    return 0;
}

int journal_open(struct journal *j, const struct file_system *files, const char *path,
                 struct error *e)
{
    int result;

    *j = (struct journal){files, path, -1};
    if (open_folder(j, e) != 0)
        return -1;
    result = files->lock(files->context, j->folder);
    if (result == -EWOULDBLOCK)
        (void)error_set(e, ERROR_IO,
                        "another daemon uses state folder %s: set another one for this daemon by "
                        "state_dir (--state-dir)",
                        path);
    else if (result < 0)
        (void)error_set(e, ERROR_IO, "state folder %s cannot be locked: %s", path,
                        strerror(-result));
    else if (each_name(j, NEXT, remove_unfinished, j, e) == 0 &&
             journal_replace(j, "writable", "", 0, false, e) == 0) {
        (void)files->remove_file(files->context, j->folder, "writable");
        return 0;
    }
    journal_close(j);
    return -1;
}

void journal_close(struct journal *j)
{
    file_system_close(j->files, &j->folder);
}

/* --- files --- */

int journal_replace(const struct journal *j, const char *name, const void *bytes, size_t length,
                    bool sync, struct error *e)
{
    char next[NAME_SIZE];

    (void)snprintf(next, sizeof next, NEXT "%s", name);
    int result = file_replace(j->files, j->folder, next, name, bytes, length, sync);
    return result == 0 ? 0 : state_file_failed(j, name, "written", result, e);
}

ssize_t journal_fetch(const struct journal *j, const char *name, void *bytes, size_t most,
                      struct error *e)
{
    const ssize_t result = file_fetch(j->files, j->folder, name, bytes, most);

    if (result >= 0)
        return result;
    (void)state_file_failed(j, name, "read", (int)result, e);
    if (result == -ENOENT)
        e->code = ERROR_NONE;
    return -1;
}

/* --- outputs --- */

static const char *output_name(char name[NAME_SIZE], const char *id)
{
    (void)snprintf(name, NAME_SIZE, OUTPUT "%s", id);
    return name;
}

/* Strings are written with their final zeros, because names may contain any other byte. */
int journal_write(const struct journal *j, const char *id, const struct journal_entry *entry,
                  struct error *e)
{
    char bytes[ENTRY_MOST], name[NAME_SIZE];
    int length =
        snprintf(bytes, sizeof bytes, "%s%c%u%c%s%c%s%c%s%c%" PRIx64 "%c",
                 entry->finished ? "finished" : "preparing", 0, entry->made, 0, entry->folder, 0,
                 entry->temporary, 0, entry->final, 0, entry->contents, 0);

    if (entry->replaces)
        length +=
            snprintf(bytes + length, sizeof bytes - (size_t)length, "%" PRIu64 "%c%" PRIu64 "%c",
                     entry->new_number, 0, entry->old_number, 0);

    if (!journal_id_is_valid(id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", id);
    return journal_replace(j, output_name(name, id), bytes, (size_t)length, true, e);
}

/* Copies the string at *at, and advances *at behind it. */
static bool take_string(const char **at, const char *end, char *out, size_t size)
{
    size_t length = strnlen(*at, (size_t)(end - *at));

    if (*at + length == end || length >= size)
        return false;
    memcpy(out, *at, length + 1);
    *at += length + 1;
    return true;
}

/* Reads what tells whether files are the same; earlier releases did not write that, and then the number of strings that
 * are left is even. */
static bool take_contents(const char **at, const char *end, struct journal_entry *entry)
{
    char contents[24];
    unsigned left = 0;

    entry->contents = 0;
    for (const char *c = *at; c < end; c++)
        left += *c == '\0';
    if (left % 2 == 0)
        return true;
    if (!take_string(at, end, contents, sizeof contents))
        return false;
    entry->contents = strtoull(contents, NULL, 16);
    return true;
}

/* Reads the two inode numbers, which follow if the output may replace an old result. */
static bool take_numbers(const char **at, const char *end, struct journal_entry *entry)
{
    char new_number[24], old_number[24];

    entry->new_number = entry->old_number = 0;
    entry->replaces = *at != end;
    if (!entry->replaces)
        return true;
    if (!take_string(at, end, new_number, sizeof new_number) ||
        !take_string(at, end, old_number, sizeof old_number))
        return false;
    entry->new_number = strtoull(new_number, NULL, 10);
    entry->old_number = strtoull(old_number, NULL, 10);
    return true;
}

int journal_read(const struct journal *j, const char *id, struct journal_entry *entry,
                 struct error *e)
{
    char bytes[ENTRY_MOST], name[NAME_SIZE], state[16], made[16], *rest;
    ssize_t length = journal_fetch(j, output_name(name, id), bytes, sizeof bytes, e);
    const char *at = bytes, *end = bytes + length;

    if (length < 0)
        return -1;
    if (!take_string(&at, end, state, sizeof state) || !take_string(&at, end, made, sizeof made) ||
        !take_string(&at, end, entry->folder, sizeof entry->folder) ||
        !take_string(&at, end, entry->temporary, sizeof entry->temporary) ||
        !take_string(&at, end, entry->final, sizeof entry->final) ||
        !take_contents(&at, end, entry) || !take_numbers(&at, end, entry) || at != end ||
        strchr(entry->temporary, '/') != NULL || strchr(entry->final, '/') != NULL)
        return error_set(e, ERROR_DAMAGED, "%s/%s is damaged", j->path, name);
    entry->finished = strcmp(state, "finished") == 0;
    entry->made = (unsigned)strtoul(made, &rest, 10);
    return 0;
}

static void remove_named(const struct journal *j, const char *name)
{
    int result = j->files->remove_file(j->files->context, j->folder, name);

    if (result < 0 && result != -ENOENT)
        log_warning("%s/%s cannot be removed: %s", j->path, name, strerror(-result));
}

void journal_remove(const struct journal *j, const char *id)
{
    char name[NAME_SIZE];

    remove_named(j, output_name(name, id));
}

int journal_each(const struct journal *j, void (*each)(void *context, const char *id),
                 void *context, struct error *e)
{
    return each_name(j, OUTPUT, each, context, e);
}

/* --- decisions --- */

static const char *decision_name(char name[NAME_SIZE], const char *id)
{
    (void)snprintf(name, NAME_SIZE, DECISION "%s", id);
    return name;
}

int journal_record_commit(const struct journal *j, const char *id, struct error *e)
{
    char name[NAME_SIZE];

    if (!journal_id_is_valid(id))
        return error_set(e, ERROR_PROTOCOL, "\"%.40s\" is not the id of an exchange", id);
    if (journal_replace(j, decision_name(name, id), "", 0, true, e) == 0)
        return 0;
    /* The failed call may have given the record its name; it must not be found after a restart. */
    remove_named(j, name);
    (void)j->files->sync(j->files->context, j->folder);
    return -1;
}

void journal_forget_commit(const struct journal *j, const char *id)
{
    char name[NAME_SIZE];

    remove_named(j, decision_name(name, id));
}

int journal_each_committed(const struct journal *j, void (*each)(void *context, const char *id),
                           void *context, struct error *e)
{
    return each_name(j, DECISION, each, context, e);
}

/* --- copies --- */

#define COPIES "copies"
#define COPY_DIGEST 16u
#define COPY_NAME_SIZE (2 * COPY_DIGEST + 1)

/* A copy is removed only while no staging of its target exists, and listed when there is one. */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;

static void name_copy(const char *path, char name[COPY_NAME_SIZE])
{
    uint8_t digest[COPY_DIGEST];

    (void)crypto_generichash(digest, sizeof digest, (const uint8_t *)path, strlen(path), NULL, 0);
    (void)sodium_bin2hex(name, COPY_NAME_SIZE, digest, sizeof digest);
}

int journal_open_copies(struct journal *list, char path[PATH_MAX], const char *state_folder,
                        struct error *e)
{
    *list = (struct journal){file_system_posix(), path, -1};
    (void)snprintf(path, PATH_MAX, "%s/" COPIES, state_folder);
    return open_folder(list, e);
}

int journal_add_copy(const struct journal *list, const char *path, bool sync, struct error *e)
{
    char name[COPY_NAME_SIZE];

    name_copy(path, name);
    (void)pthread_mutex_lock(&listing);
    int result = journal_replace(list, name, path, strlen(path), sync, e);
    (void)pthread_mutex_unlock(&listing);
    return result == 0 ? 0 : error_wrap(e, "the copy to %s cannot be recorded", path);
}

void journal_remove_copy(const struct journal *list, const char *path,
                         bool (*is_there)(const void *context), const void *context)
{
    char name[COPY_NAME_SIZE];

    name_copy(path, name);
    (void)pthread_mutex_lock(&listing);
    if (!is_there(context))
        remove_named(list, name);
    (void)pthread_mutex_unlock(&listing);
}

struct copies {
    const struct journal *list;
    void (*each)(void *context, const char *path);
    void *context;
};

static void tell_copy(void *context, const char *name)
{
    const struct copies *c = context;
    char path[PATH_MAX], expected[COPY_NAME_SIZE];
    const ssize_t length = file_fetch(c->list->files, c->list->folder, name, path, sizeof path - 1);

    path[length > 0 ? length : 0] = '\0';
    name_copy(path, expected);
    if (length < 0) {
        log_warning("the entry %s of a copy in the state folder cannot be read: %s", name,
                    strerror((int)-length));
    } else if (strcmp(name, expected) == 0) {
        c->each(c->context, path);
    } else { /* a crash cut it off before the staging was made */
        log_warning("the entry %s of a copy in the state folder is damaged, and is removed", name);
        remove_named(c->list, name);
    }
}

int journal_each_copy(const struct journal *list, void (*each)(void *context, const char *path),
                      void *context, struct error *e)
{
    struct copies c = {list, each, context};

    return each_name(list, "", tell_copy, &c, e);
}
