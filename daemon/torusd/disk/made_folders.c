#include "daemon/torusd/disk/made_folders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "daemon/torusd/disk/attributes.h"

struct made_use {
    struct made_use *next;
    size_t root;             /* length of the root's path */
    char path[2 * PATH_MAX]; /* absolute */
};

struct made_folder {
    struct made_folder *next;
    char path[]; /* absolute */
};

void made_folders_init(struct made_folders *m)
{
    *m = (struct made_folders){0};
    (void)pthread_mutex_init(&m->lock, NULL);
}

void made_folders_free(struct made_folders *m)
{
    while (m->uses != NULL)
        made_folders_leave(m, m->uses, false);
    (void)pthread_mutex_destroy(&m->lock);
}

/* Whether a path leads through a folder, or to it. */
static bool leads_through(const char *path, const char *folder)
{
    const size_t length = strlen(folder);

    return strncmp(path, folder, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static struct made_folder *find(const struct made_folders *m, const char *path)
{
    struct made_folder *folder = m->folders;

    while (folder != NULL && strcmp(folder->path, path) != 0)
        folder = folder->next;
    return folder;
}

/* Whether somebody else uses a folder. */
static bool is_used(const struct made_folders *m, const char *folder, const struct made_use *but)
{
    for (const struct made_use *use = m->uses; use != NULL; use = use->next)
        if (use != but && leads_through(use->path, folder))
            return true;
    return false;
}

struct made_use *made_folders_enter(struct made_folders *m, const struct roots *roots,
                                    const struct location *place)
{
    struct made_use *use = calloc(1, sizeof *use);

    if (use == NULL)
        return NULL;
    (void)snprintf(use->path, sizeof use->path, "%s", roots->path[place->root]);
    use->root = strlen(use->path);
    if (strcmp(place->path, ".") != 0)
        (void)snprintf(use->path + use->root, sizeof use->path - use->root, "/%s", place->path);
    (void)pthread_mutex_lock(&m->lock);
    LL_PREPEND(m->uses, use);
    (void)pthread_mutex_unlock(&m->lock);
    return use;
}

/* Notes that the folder with this path below the user's root has been made. */
static void add(struct made_folders *m, const struct made_use *use, const char *path)
{
    const size_t length = use->root + 1 + strlen(path);
    struct made_folder *folder = malloc(sizeof *folder + length + 1);

    if (folder == NULL)
        return;
    (void)snprintf(folder->path, length + 1, "%.*s/%s", (int)use->root, use->path, path);
    (void)pthread_mutex_lock(&m->lock);
    if (find(m, folder->path) == NULL) {
        LL_PREPEND(m->folders, folder);
        folder = NULL;
    }
    (void)pthread_mutex_unlock(&m->lock);
    free(folder);
}

/* Whether the folder with this path below the user's root was made, and has no other user. */
static bool is_unused(struct made_folders *m, const struct made_use *use, const char *path)
{
    char whole[sizeof use->path];

    (void)snprintf(whole, sizeof whole, "%.*s/%s", (int)use->root, use->path, path);
    (void)pthread_mutex_lock(&m->lock);
    const bool unused = find(m, whole) != NULL && !is_used(m, whole, use);
    (void)pthread_mutex_unlock(&m->lock);
    return unused;
}

void made_folders_leave(struct made_folders *m, struct made_use *use, bool keep)
{
    if (use == NULL)
        return;
    (void)pthread_mutex_lock(&m->lock);
    LL_DELETE(m->uses, use);
    for (struct made_folder **at = &m->folders, *folder; (folder = *at) != NULL;) {
        if (keep ? leads_through(use->path, folder->path) : !is_used(m, folder->path, NULL)) {
            *at = folder->next;
            free(folder);
        } else {
            at = &folder->next;
        }
    }
    (void)pthread_mutex_unlock(&m->lock);
    free(use);
}

/* --- on the disk --- */

/* Divides a path of a place, in place, into that of the folder above and the name in it, which it returns. */
static const char *split(char *path, const char **above)
{
    char *slash = strrchr(path, '/');

    *above = slash != NULL ? path : ".";
    if (slash == NULL)
        return path;
    *slash = '\0';
    return slash + 1;
}

int made_folders_open(const struct roots *roots, const struct location *place, unsigned *missing)
{
    char path[PATH_MAX];
    const char *at = path;
    int folder;

    (void)strcpy(path, place->path);
    *missing = 0;
    while ((folder = roots_open_folder(roots, place, at)) == -ENOENT && strcmp(at, ".") != 0) {
        (void)split(path, &at);
        ++*missing;
    }
    return folder;
}

/* Makes one folder, which is noted by its path below the root, and moves *folder down to it. Returns 0 or -errno. */
static int make_one(struct made_folders *m, const struct made_use *use,
                    const struct file_system *files, int *folder, const char *path, mode_t mode)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    const int made = files->make_folder(files->context, *folder, name, ATTRIBUTES_PRIVATE);
    struct attributes a;

    if (made == 0)
        add(m, use, path);
    else if (made != -EEXIST)
        return made;
    int inner = files->open_folder(files->context, *folder, name);
    if (inner < 0)
        return inner;
    int result = made == 0 ? attributes_of_new(files, inner, mode, &a) : 0;
    if (result == 0 && made == 0)
        result = attributes_set(files, inner, &a);
    if (result >= 0)
        result = files->sync(files->context, *folder);
    files->close(files->context, result < 0 ? inner : *folder);
    if (result < 0)
        return result;
    *folder = inner;
    return 0;
}

/* Returns the length of a path without its last `count` names. */
static size_t without_last(const char *path, unsigned count)
{
    size_t length = strlen(path);

    for (; count > 0 && length > 0; count--)
        while (length > 0 && path[--length] != '/')
            ;
    return length;
}

int made_folders_make(struct made_folders *m, const struct made_use *use, const struct roots *roots,
                      const struct location *place, int *folder, unsigned missing, mode_t mode)
{
    char path[PATH_MAX];
    int result = 0;

    for (; missing > 0 && result == 0; missing--) {
        (void)strcpy(path, place->path);
        path[without_last(path, missing - 1)] = '\0';
        result = make_one(m, use, roots->files, folder, path, mode);
    }
    return result;
}

void made_folders_remove(struct made_folders *m, const struct made_use *use,
                         const struct roots *roots, const struct location *place, unsigned made,
                         int *folder)
{
    const struct file_system *files = roots->files;
    char path[PATH_MAX];
    const char *at = path, *name;

    (void)strcpy(path, place->path);
    for (unsigned i = 0; strcmp(at, ".") != 0; i++) {
        const bool own = use != NULL ? is_unused(m, use, path) : i < made;
        name = split(path, &at);
        if (!own)
            continue;
        int above = roots_open_folder(roots, place, at);
        int result = above < 0 ? above : files->remove_folder(files->context, above, name);
        if (above >= 0 && (result == 0 || result == -ENOENT)) {
            file_system_close(files, folder);
            *folder = above;
        } else if (above >= 0) {
            files->close(files->context, above);
        }
        if (result < 0 && result != -ENOENT)
            return;
    }
}
