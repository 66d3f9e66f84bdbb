#include "daemon/torusd/tree/removal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torusd/disk/names.h"
#include "daemon/torusd/tree/staging.h"

static int remove_name(struct removal *r, char *path, size_t length, unsigned char type,
                       struct error *e);

static bool is_stopped(const struct removal *r)
{
    return r->stop != NULL && atomic_load(r->stop);
}

/* If the mode of a folder of this process keeps the process out, changes it; *mode: what it was before, or 0. Errors are
 * left to what the caller does next. */
static void open_for_changes(int folder, mode_t *mode)
{
    struct stat st;

    if (fstat(folder, &st) != 0 || (st.st_mode & S_IRWXU) == S_IRWXU || st.st_uid != geteuid())
        return;
    if (tree_at_set_mode(folder, (st.st_mode & 07777u) | S_IRWXU) == 0)
        *mode = st.st_mode & 07777u;
}

/* The folder stays. */
static void restore_mode(struct removal *r, const char *path, size_t length, mode_t mode)
{
    int folder = tree_at_folder(r->at, path, length);

    if (folder >= 0)
        (void)tree_at_set_mode(folder, mode);
}

/* `path` has room for MANIFEST_PATH_MOST + 1 bytes, and is the same again afterwards. */
static int remove_below(struct removal *r, char *path, size_t length, struct error *e)
{
    struct names names = {0};
    mode_t mode = 0;
    int folder = tree_at_folder(r->at, path, length), result = 0;

    if (folder == -ENOENT)
        return 0;
    if (folder >= 0 && !r->look_only)
        open_for_changes(folder, &mode);
    int error = folder < 0 ? folder : names_read(&names, folder);
    if (error < 0)
        result = tree_at_failed(r->at, path, "listed", -error, e);
    for (size_t i = 0; i < names.count && result == 0; i++) {
        const char *name = names_get(&names, i);
        size_t more = strlen(name), begin = length + (length > 0 ? 1 : 0);
        if (is_stopped(r)) {
            result = error_set(e, ERROR_CANCELLED, "the copy was stopped");
        } else if (begin + more > MANIFEST_PATH_MOST) {
            result = tree_at_failed(r->at, path, "removed", ENAMETOOLONG, e);
        } else {
            if (length > 0)
                path[length] = '/';
            memcpy(path + begin, name, more + 1);
            result = remove_name(r, path, begin + more, names_type(&names, i), e);
        }
        path[length] = '\0';
    }
    names_free(&names);
    if (mode != 0 && (result != 0 || r->stays))
        restore_mode(r, path, length, mode);
    return result;
}

/* Checks that a name can be removed. Returns 0, or -1 with *e. */
static int check_one(struct removal *r, const char *path, int above, const char *name, bool *there,
                     struct error *e)
{
    int result = tree_at_check_change(r->at, above, name, path, e);

    *there = result == 0 || result == -EXDEV; /* subvolumes can be removed */
    if (result == -EBUSY)                     /* a mount point */
        r->stays = true;
    return *there || result == -EBUSY || result == -ENOENT ? 0 : -1;
}

/* Notes a path that would be removed, as long as there is room: people read the first ones. */
static void note_path(const struct removal *r, const char *path)
{
    struct removal_paths *p = r->paths;
    const size_t length = strlen(path) + 1;

    if (p == NULL || !r->look_only)
        return;
    if (p->bytes == NULL)
        p->bytes = malloc(TREE_GOING_MOST);
    if (p->bytes == NULL || length > TREE_GOING_MOST - p->length)
        return;
    memcpy(p->bytes + p->length, path, length);
    p->length += length;
}

/* Removes one name, which has nothing in it. */
static int unlink_one(struct removal *r, const char *path, bool is_folder, struct error *e)
{
    const char *name;
    int above = tree_at_parent(r->at, path, &name);

    if (above == -ENOENT)
        return 0;
    if (above < 0)
        return tree_at_failed(r->at, path, "removed", -above, e);
    bool there = true;
    if (r->look_only && check_one(r, path, above, name, &there, e) != 0)
        return -1;
    if (!there)
        return 0;
    if (!r->look_only && unlinkat(above, name, is_folder ? AT_REMOVEDIR : 0) != 0) {
        if (errno == ENOENT)
            return 0;
        /* a mount point; or something has been put into the folder meanwhile */
        if (errno == EBUSY || errno == ENOTEMPTY || errno == EEXIST)
            return r->stays = true, 0;
        return tree_at_failed(r->at, path, "removed", errno, e);
    }
    note_path(r, path);
    if (r->removed++ == 0)
        (void)snprintf(r->first, sizeof r->first, "%s", path);
    return 0;
}

static int remove_folder(struct removal *r, char *path, size_t length, struct error *e)
{
    bool before = r->stays;

    r->stays = false;
    int result = remove_below(r, path, length, e);
    if (result == 0 && !r->stays)
        result = unlink_one(r, path, true, e);
    r->stays = r->stays || before;
    return result;
}

static int remove_name(struct removal *r, char *path, size_t length, unsigned char type,
                       struct error *e)
{
    const char *name;
    struct stat st;
    bool mount = false, is_folder = type == DT_DIR;
    int above = tree_at_parent(r->at, path, &name);

    if (above == -ENOENT || above == -ENOTDIR)
        return 0;
    if (above < 0)
        return tree_at_failed(r->at, path, "removed", -above, e);
    if (type == DT_DIR || type == DT_UNKNOWN) {
        int result = tree_at_status(above, name, &st, &mount);
        if (result == -ENOENT)
            return 0;
        if (result < 0)
            return tree_at_failed(r->at, path, "examined", -result, e);
        is_folder = S_ISDIR(st.st_mode);
    }
    if (mount || (!r->everything &&
                  (staging_is_name(name) ||
                   (r->patterns != NULL && patterns_leave_out(r->patterns, path, is_folder)))))
        return r->stays = true, 0;
    return is_folder ? remove_folder(r, path, length, e) : unlink_one(r, path, false, e);
}

int removal_of(struct removal *r, const char *path, struct error *e)
{
    char whole[MANIFEST_PATH_MOST + 1];

    (void)snprintf(whole, sizeof whole, "%s", path);
    return remove_name(r, whole, strlen(whole), DT_UNKNOWN, e);
}

int removal_below(struct removal *r, const char *path, struct error *e)
{
    char whole[MANIFEST_PATH_MOST + 1];

    (void)snprintf(whole, sizeof whole, "%s", path);
    return remove_below(r, whole, strlen(whole), e);
}

/* --- what a target has and the manifest lacks --- */

/* A folder on the way to the last entry, and its names behind that entry. */
struct level {
    size_t length; /* of its path */
    struct names names;
    size_t next;
};

struct extras {
    struct removal *r;
    struct level *level;
    size_t count, room;
    char path[MANIFEST_PATH_MOST + 1]; /* of the last folder */
};

/* Removes the names of the last folder that come before `until`; NULL: all that are left. */
static int remove_names(struct extras *x, const char *until, struct error *e)
{
    struct level *level = &x->level[x->count - 1];
    size_t begin = level->length + (level->length > 0 ? 1 : 0);
    char path[MANIFEST_PATH_MOST + 1];

    memcpy(path, x->path, level->length);
    if (level->length > 0)
        path[level->length] = '/';
    for (; level->next < level->names.count; level->next++) {
        const char *name = names_get(&level->names, level->next);
        int order = until == NULL ? -1 : strcmp(name, until);
        if (order >= 0) {
            level->next += order == 0;
            return 0;
        }
        size_t length = strlen(name);
        path[begin] = '\0';
        if (begin + length > MANIFEST_PATH_MOST)
            return tree_at_failed(x->r->at, path, "cleared", ENAMETOOLONG, e);
        memcpy(path + begin, name, length + 1);
        if (removal_of(x->r, path, e) != 0)
            return -1;
    }
    return 0;
}

static void pop(struct extras *x)
{
    names_free(&x->level[--x->count].names);
}

/* Leaves all folders that do not hold `path`; NULL: all. */
static int leave(struct extras *x, const char *path, struct error *e)
{
    while (x->count > 0) {
        size_t length = x->level[x->count - 1].length;
        if (path != NULL && manifest_path_is_in(path, x->path, length))
            return 0;
        if (remove_names(x, NULL, e) != 0)
            return -1;
        pop(x);
    }
    return 0;
}

/* Enters a folder of the manifest, if the target has it. */
static int enter(struct extras *x, const struct entry *entry, struct error *e)
{
    const char *name;
    struct stat st;
    bool mount = false;
    int folder = tree_at_parent(x->r->at, entry->path, &name);
    int result = folder < 0 ? folder : tree_at_status(folder, name, &st, &mount);

    if (result == -ENOENT || result == -ENOTDIR ||
        (result == 0 && (!S_ISDIR(st.st_mode) || (mount && entry->path_length > 0))))
        return 0;
    if (GROW(x->level, x->count, x->room) != 0)
        return tree_at_failed(x->r->at, entry->path, "listed", ENOMEM, e);
    struct level *level = &x->level[x->count];
    *level = (struct level){.length = entry->path_length};
    if (result == 0)
        result = folder = tree_at_folder(x->r->at, entry->path, entry->path_length);
    if (result >= 0)
        result = names_read(&level->names, folder);
    if (result < 0) {
        names_free(&level->names);
        return tree_at_failed(x->r->at, entry->path, "listed", -result, e);
    }
    x->count++;
    memcpy(x->path, entry->path, entry->path_length + 1);
    return 0;
}

static int visit(void *context, const struct entry *entry, struct error *e)
{
    struct extras *x = context;
    const char *slash = strrchr(entry->path, '/');
    size_t parent = slash != NULL ? (size_t)(slash - entry->path) : 0;

    if (leave(x, entry->path, e) != 0)
        return -1;
    if (entry->path_length > 0 && x->count > 0 && x->level[x->count - 1].length == parent &&
        remove_names(x, slash != NULL ? slash + 1 : entry->path, e) != 0)
        return -1;
    return entry->kind == ENTRY_FOLDER ? enter(x, entry, e) : 0;
}

int extras_remove(const struct manifest *m, struct removal *r, struct error *e)
{
    struct extras x = {.r = r};
    int result = manifest_each(m, visit, &x, e);

    if (result == 0)
        result = leave(&x, NULL, e);
    while (x.count > 0)
        pop(&x);
    free(x.level);
    return result;
}
