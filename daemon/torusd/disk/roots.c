#include "daemon/torusd/disk/roots.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/ranked_path.h"

struct root {
    char *name; /* path as configured */
    int folder;
};

int roots_add(struct roots *roots, const struct file_system *files, const char *path,
              struct error *e)
{
    char resolved[PATH_MAX];
    int result = files->resolve(files->context, path, resolved);
    int folder =
        result < 0 ? result : files->open_folder(files->context, FILE_SYSTEM_TOP, resolved);

    if (folder < 0)
        return error_set(e, ERROR_USAGE, "data root %s cannot be opened: %s", path,
                         strerror(-folder));
    struct root *root = reallocarray(roots->root, roots->count + 1, sizeof *root);
    if (root != NULL)
        roots->root = root;
    char **more = reallocarray(roots->path, roots->count + 1, sizeof *more);
    if (more != NULL)
        roots->path = more;
    char *name = strdup(path), *copy = strdup(resolved);
    if (root == NULL || more == NULL || name == NULL || copy == NULL) {
        free(name);
        free(copy);
        files->close(files->context, folder);
        return error_set(e, ERROR_MEMORY, "out of memory for data root %s", path);
    }
    roots->files = files;
    roots->root[roots->count] = (struct root){name, folder};
    roots->path[roots->count++] = copy;
    return 0;
}

void roots_free(struct roots *roots)
{
    for (size_t i = 0; i < roots->count; i++) {
        roots->files->close(roots->files->context, roots->root[i].folder);
        free(roots->root[i].name);
        free(roots->path[i]);
    }
    free(roots->root);
    free(roots->path);
    *roots = (struct roots){0};
}

int roots_folder(const struct roots *roots, const struct location *place)
{
    return roots->root[place->root].folder;
}

int roots_open_folder(const struct roots *roots, const struct location *place, const char *path)
{
    return roots->files->open_folder(roots->files->context, roots_folder(roots, place), path);
}

const char *roots_name(const struct roots *roots, size_t root)
{
    return roots->root[root].name;
}

bool roots_are_same(const struct roots *a, const struct roots *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->root[i].name, b->root[i].name) != 0 || strcmp(a->path[i], b->path[i]) != 0)
            return false;
    return true;
}

/* Fills *e: a path, as given or expanded, is too long. Returns -1. */
static int path_too_long(const char *path, struct error *e)
{
    return error_set(e, ERROR_USAGE, "a path is too long, at most %d bytes are possible: %.60s...",
                     PATH_MAX - 2, path);
}

int path_expand(const char *path, uint32_t rank, char *out, struct error *e)
{
    if (ranked_path_check(path, e) != 0)
        return -1;
    return ranked_path_expand(path, rank, out, PATH_MAX) < PATH_MAX - 1 ? 0
                                                                        : path_too_long(path, e);
}

static int refuse_outside(const struct roots *roots, const char *path, struct error *e)
{
    if (roots->count == 0)
        return error_set(e, ERROR_REFUSED,
                         "%s cannot be used: no data_roots are configured on this node, so no "
                         "folder may be used",
                         path);
    return error_set(e, ERROR_REFUSED, "%s is not below the configured data_roots (%s%s)", path,
                     roots->path[0], roots->count > 1 ? ", ..." : "");
}

/* Finds the next component of a path at or after *at, and advances *at behind it. "." and empty components
 * are skipped. Returns the length of the component, 0 at the end. */
static size_t next_component(const char **at, const char **start)
{
    size_t length;

    do {
        *at += strspn(*at, "/");
        *start = *at;
        length = strcspn(*at, "/");
        *at += length;
    } while (length == 1 && **start == '.');
    return length;
}

static bool has_parent_component(const char *path)
{
    const char *start;
    size_t length;

    while ((length = next_component(&path, &start)) > 0)
        if (length == 2 && strncmp(start, "..", 2) == 0)
            return true;
    return false;
}

/* Returns the part of `path` after the root's path, or NULL if `path` is not below the root. */
static const char *path_below_root(const char *root, const char *path)
{
    const char *r, *p;

    for (;;) {
        size_t length = next_component(&root, &r);
        if (length == 0)
            return path;
        if (next_component(&path, &p) != length || strncmp(r, p, length) != 0)
            return NULL;
    }
}

/* Roots may be nested: the deepest one counts, so that each place has one root. */
int roots_find(const struct roots *roots, const char *path, struct location *place, struct error *e)
{
    const char *rest = NULL, *start;
    size_t length, used = 0;

    for (size_t i = 0; i < roots->count && !has_parent_component(path); i++) {
        const char *name[] = {roots->root[i].name, roots->path[i]};
        for (size_t n = 0; n < 2; n++) {
            const char *found = name[n][0] == '/' ? path_below_root(name[n], path) : NULL;
            if (found == NULL || (rest != NULL && found <= rest))
                continue;
            rest = found;
            place->root = i;
        }
    }
    if (rest == NULL)
        return refuse_outside(roots, path, e);
    while ((length = next_component(&rest, &start)) > 0) {
        if (used + length + 2 > sizeof place->path)
            return path_too_long(path, e);
        if (used > 0)
            place->path[used++] = '/';
        memcpy(place->path + used, start, length);
        used += length;
    }
    if (used == 0)
        place->path[used++] = '.';
    place->path[used] = '\0';
    return 0;
}

const char *location_split(const struct location *place, struct location *above)
{
    const char *slash = strrchr(place->path, '/');

    *above = *place;
    (void)strcpy(above->path + (slash != NULL ? slash - place->path : 0), slash != NULL ? "" : ".");
    return slash != NULL ? slash + 1 : place->path;
}

int roots_find_target(const struct roots *roots, const char *path, struct location *place,
                      struct error *e)
{
    size_t end = strlen(path);

    while (end > 0 && path[end - 1] == '/')
        end--;
    const char *name = memrchr(path, '/', end);
    size_t length = name == NULL ? 0 : (size_t)(path + end - ++name);
    if (length == 0 || (length == 1 && name[0] == '.') ||
        (length == 2 && strncmp(name, "..", 2) == 0))
        return error_set(e, ERROR_USAGE,
                         "target %s is a data root itself: name a folder below the root", path);
    if (has_parent_component(path))
        return error_set(e, ERROR_USAGE, "target %s contains \"..\": name the target without it",
                         path);
    if (roots_find(roots, path, place, e) != 0)
        return -1;
    if (strcmp(place->path, ".") == 0)
        return refuse_outside(roots, path, e);
    return 0;
}

static int open_place(const struct roots *roots, const struct location *place)
{
    return roots->files->open_file(roots->files->context, roots_folder(roots, place), place->path);
}

int roots_open(const struct roots *roots, const char *path, struct location *place,
               struct file_status *status, struct error *e)
{
    const struct file_system *files = roots->files;
    char resolved[PATH_MAX];
    int file = -ELOOP, result;

    if (roots->count == 0)
        return refuse_outside(roots, path, e);
    if (roots_find(roots, path, place, e) == 0)
        file = open_place(roots, place);
    if (file == -ELOOP) {
        /* Links are resolved first. Even if the links change before the file is opened, the opened file lies
         * below a root. */
        file = files->resolve(files->context, path, resolved);
        if (file == 0 && roots_find(roots, resolved, place, e) != 0)
            return refuse_outside(roots, path, e);
        if (file == 0)
            file = open_place(roots, place);
    }
    if (file < 0)
        return error_set(e, file == -ENOENT ? ERROR_NONE : ERROR_IO, "%s cannot be opened: %s",
                         path, strerror(-file));
    result = files->status(files->context, file, status);
    if (result == 0)
        return file;
    files->close(files->context, file);
    return error_set(e, ERROR_IO, "%s cannot be read: %s", path, strerror(-result));
}

int roots_check_state_folder(const struct roots *roots, const char *path, int folder,
                             struct error *e)
{
    const struct file_system *files = roots->files;

    if (roots->count == 0 || files->is_volatile(files->context, folder) != 1)
        return 0;
    for (size_t i = 0; i < roots->count; i++)
        if (files->is_volatile(files->context, roots->root[i].folder) != 1)
            return error_set(
                e, ERROR_USAGE,
                "state folder %s is in memory (tmpfs), and a reboot empties it, but data root %s "
                "is on a disk: an exchange that a power failure interrupts could end with a "
                "partial result. Set state_dir (--state-dir) to a folder on a disk",
                path, roots->path[i]);
    return 0;
}
