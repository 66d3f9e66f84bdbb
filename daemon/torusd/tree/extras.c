#include "daemon/torusd/tree/extras.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/torusd/tree/names.h"

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
        if (path != NULL &&
            (length == 0 || (strncmp(path, x->path, length) == 0 && path[length] == '/')))
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
    if (x->count == x->room) {
        size_t room = 2 * x->room + 16;
        struct level *more = reallocarray(x->level, room, sizeof *more);
        if (more == NULL)
            return tree_at_failed(x->r->at, entry->path, "listed", ENOMEM, e);
        x->level = more;
        x->room = room;
    }
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

static int visit(struct extras *x, const struct entry *entry, struct error *e)
{
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
    struct manifest_cursor *cursor = manifest_cursor_new(m);
    struct entry entry;
    int result = cursor == NULL ? error_set(e, ERROR_MEMORY, "out of memory") : 1;

    while (result == 1) {
        result = manifest_next(cursor, &entry, e);
        if (result == 1 && visit(&x, &entry, e) != 0)
            result = -1;
    }
    if (result == 0)
        result = leave(&x, NULL, e);
    while (x.count > 0)
        pop(&x);
    free(x.level);
    manifest_cursor_free(cursor);
    return result;
}
