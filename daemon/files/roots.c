#include "daemon/files/roots.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int roots_add(struct roots *roots, const char *path, struct error *e)
{
    char *resolved = realpath(path, NULL);
    char **more;

    if (resolved == NULL)
        return error_set(e, ERROR_USAGE, "data root %s: %s", path, strerror(errno));
    more = realloc(roots->path, (roots->count + 1) * sizeof *more);
    if (more == NULL) {
        free(resolved);
        return error_set(e, ERROR_MEMORY, "no memory");
    }
    roots->path = more;
    roots->path[roots->count++] = resolved;
    return 0;
}

void roots_free(struct roots *roots)
{
    for (size_t i = 0; i < roots->count; i++)
        free(roots->path[i]);
    free(roots->path);
    *roots = (struct roots){0};
}

/* 0: no; 1: it is the root; 2: it lies below it. */
static int relation(const char *root, const char *path)
{
    size_t n = strlen(root);

    if (strcmp(root, "/") == 0)
        return path[1] == '\0' ? 1 : 2;
    if (strncmp(root, path, n) != 0)
        return 0;
    return path[n] == '\0' ? 1 : path[n] == '/' ? 2 : 0;
}

static int best_relation(const struct roots *roots, const char *path)
{
    int best = 0;

    for (size_t i = 0; i < roots->count; i++) {
        int r = relation(roots->path[i], path);
        best = r > best ? r : best;
    }
    return best;
}

bool roots_contain(const struct roots *roots, const char *resolved)
{
    return best_relation(roots, resolved) > 0;
}

static int outside(const struct roots *roots, const char *path, struct error *e)
{
    if (roots->count == 0)
        return error_set(e, ERROR_REFUSED,
                         "%s: no data_roots are configured, so no folder may be used", path);
    return error_set(e, ERROR_REFUSED, "%s is not below the configured data_roots (%s%s)", path,
                     roots->path[0], roots->count > 1 ? ", ..." : "");
}

int path_expand(const char *path, uint32_t rank, char *out, struct error *e)
{
    size_t used = 0;

    if (path[0] != '/')
        return error_set(e, ERROR_USAGE, "%s is not an absolute path", path);
    for (const char *c = path; *c != '\0'; c++) {
        int n = 1;
        if (*c != '%') {
            out[used] = *c;
        } else if (c[1] == '%') {
            out[used] = *c++;
        } else if (c[1] == 'r') {
            n = snprintf(out + used, PATH_MAX - used, "%u", rank);
            c++;
        } else {
            return error_set(e, ERROR_USAGE, "%s: %% must be followed by r (the node's rank) or %%",
                             path);
        }
        used += (size_t)n;
        if (used >= PATH_MAX - 1)
            return error_set(e, ERROR_USAGE, "path too long: %.60s...", path);
    }
    out[used] = '\0';
    return 0;
}

int roots_resolve_folder(const struct roots *roots, const char *path, char *out, struct error *e)
{
    struct stat st;

    if (realpath(path, out) == NULL)
        return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    if (!roots_contain(roots, out))
        return outside(roots, path, e);
    if (stat(out, &st) != 0)
        return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return error_set(e, ERROR_REFUSED, "%s is not a folder", path);
    return 0;
}

int roots_open_file(const struct roots *roots, const char *path, struct error *e)
{
    char link[64], resolved[PATH_MAX];
    struct stat st;
    ssize_t n;
    /* Not blocking: opening a FIFO must not stop the daemon. */
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (fd < 0) {
        (void)error_set(e, errno == ENOENT ? ERROR_NONE : ERROR_IO, "%s: %s", path,
                        strerror(errno));
        return -1;
    }
    /* What was opened is checked, not a name that may have changed its meaning meanwhile. */
    (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    n = readlink(link, resolved, sizeof resolved - 1);
    if (n < 0) {
        (void)error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
    } else {
        resolved[n] = '\0';
        if (!roots_contain(roots, resolved))
            (void)outside(roots, path, e);
        else if (fstat(fd, &st) != 0)
            (void)error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
        else if (!S_ISREG(st.st_mode))
            (void)error_set(e, ERROR_REFUSED, "%s is not a regular file", path);
        else
            return fd;
    }
    (void)close(fd);
    return -1;
}

/* Makes the folders of `rest` below `base` ("/base/rest..."), one by one. */
static int make_folders(char *path, size_t base_length, unsigned *created, struct error *e)
{
    for (char *c = path + base_length + 1;; c++) {
        if (*c != '/' && *c != '\0')
            continue;
        char end = *c;
        *c = '\0';
        if (mkdir(path, 0777) == 0)
            ++*created;
        else if (errno != EEXIST)
            return error_set(e, ERROR_IO, "%s: %s", path, strerror(errno));
        *c = end;
        if (end == '\0')
            return 0;
    }
}

int roots_resolve_target(const struct roots *roots, const char *path, char *out, unsigned *created,
                         struct error *e)
{
    char parent[PATH_MAX], existing[PATH_MAX], resolved[PATH_MAX];
    size_t length = strlen(path);
    const char *name;

    *created = 0;
    if (length >= sizeof parent)
        return error_set(e, ERROR_USAGE, "path too long: %.60s...", path);
    memcpy(parent, path, length + 1);
    while (length > 1 && parent[length - 1] == '/')
        parent[--length] = '\0';
    name = strrchr(parent, '/') + 1;
    if (strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return error_set(e, ERROR_USAGE, "%s: the target needs a name of its own", path);
    if (strstr(path, "/../") != NULL)
        return error_set(e, ERROR_USAGE, "%s: no \"..\" in a target", path);
    size_t parent_length = (size_t)(name - parent) - 1; /* 0: "/" */

    /* The deepest folder above it that exists. */
    memcpy(existing, parent, parent_length);
    existing[parent_length] = '\0';
    while (realpath(existing[0] != '\0' ? existing : "/", resolved) == NULL) {
        if (errno != ENOENT || existing[0] == '\0')
            return error_set(e, ERROR_IO, "%s: %s", existing, strerror(errno));
        *strrchr(existing, '/') = '\0';
    }
    size_t existing_length = strlen(existing);
    const char *missing = parent + existing_length; /* "/a/b/name" */
    if (resolved[1] == '\0')
        resolved[0] = '\0';
    if (strlen(resolved) + strlen(missing) >= PATH_MAX)
        return error_set(e, ERROR_USAGE, "path too long: %.60s...", path);
    (void)stpcpy(stpcpy(out, resolved), missing);
    if (best_relation(roots, out) != 2)
        return outside(roots, path, e);

    char *last = strrchr(out, '/');
    *last = '\0';
    if (strlen(out) > strlen(resolved) && make_folders(out, strlen(resolved), created, e) != 0) {
        *last = '/';
        roots_remove_created(out, *created);
        return -1;
    }
    *last = '/';
    return 0;
}

void roots_remove_created(const char *target, unsigned created)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s", target);
    for (unsigned i = 0; i < created; i++) {
        char *last = strrchr(path, '/');
        if (last == NULL || last == path)
            return;
        *last = '\0';
        if (rmdir(path) != 0)
            return;
    }
}
