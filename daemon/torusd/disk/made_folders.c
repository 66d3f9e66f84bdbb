#include "daemon/torusd/disk/made_folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

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
                                    const struct place *place)
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

void made_folders_add(struct made_folders *m, const struct made_use *use, const char *path)
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

bool made_folders_unused(struct made_folders *m, const struct made_use *use, const char *path)
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
