/* Where a target and its staging are. */
#include "daemon/torusd/tree/staging.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/torusd/disk/beside.h"
#include "daemon/torusd/disk/journal.h"
#include "proto/text.h"

#define TRIES 10u

bool staging_is_name(const char *name)
{
    size_t length = strlen(name), suffix = strlen(BESIDE_COPY);

    return name[0] == '.' && length >= suffix && strcmp(name + length - suffix, BESIDE_COPY) == 0;
}

/* Whether there is a staging of the target now, whoever has made it. */
static bool staging_exists(const void *staging)
{
    const struct staging *s = staging;
    struct stat st;

    return fstatat(s->above, s->name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void staging_forget(const struct staging *s, const char *state_folder)
{
    journal_remove_copy(state_folder, s->path, staging_exists, s);
}

bool staging_is_path(const char *path)
{
    char name[NAME_MAX + 1];

    for (size_t length; *path != '\0'; path += length + (path[length] == '/')) {
        length = strcspn(path, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, path);
        if (staging_is_name(name))
            return true;
    }
    return false;
}

/* Opens the folder with this path below `at`; makes what is missing. Returns its descriptor, of `at`, or -errno. */
static int open_above(const struct staging *s, struct tree_at *at, const char *path)
{
    int folder = tree_at_folder(at, path, strlen(path)), above, result;
    unsigned missing;

    if (folder != -ENOENT || s->made == NULL)
        return folder;
    above = made_folders_open(s->roots, &s->place, &missing);
    if (above < 0)
        return above;
    result =
        made_folders_make(s->made, s->use, s->roots, &s->place, &above, missing, s->output_mode);
    (void)close(above);
    return result < 0 ? result : tree_at_folder(at, path, strlen(path));
}

void staging_remove_made(struct staging *s)
{
    int folder = -1;

    if (s->use != NULL)
        made_folders_remove(s->made, s->use, s->roots, &s->place, 0, &folder);
    if (folder >= 0)
        (void)close(folder);
}

void staging_keep_made(struct staging *s)
{
    made_folders_leave(s->made, s->use, true);
    s->use = NULL;
}

/* If the target is a mount point, everything is done inside it. */
static int enter_mount(struct staging *s)
{
    struct stat st, above;
    bool mount;

    if (tree_at_status(s->above, s->target, &st, &mount) != 0 || !S_ISDIR(st.st_mode) ||
        fstat(s->above, &above) != 0 || (!mount && st.st_dev == above.st_dev))
        return 0;
    int inside = openat(s->above, s->target, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside < 0)
        return -errno;
    (void)close(s->above);
    s->above = inside;
    (void)strcpy(s->target, ".");
    return 0;
}

/* Opens s->above, the folder with this path below the root. Returns 0 or -errno. */
static int find_above(struct staging *s, const char *path)
{
    struct tree_at at;
    int folder = -ENOENT;

    if (s->made != NULL && (s->use = made_folders_enter(s->made, s->roots, &s->place)) == NULL)
        return -ENOMEM;
    /* another copy may remove a folder that it has made just when this one has found it */
    for (unsigned tries = 0; folder == -ENOENT && tries < (s->made != NULL ? TRIES : 1); tries++) {
        tree_at_init(&at, roots_folder(s->roots, &s->place), ".", s->path);
        folder = open_above(s, &at, path);
        if (folder >= 0 && (s->above = fcntl(folder, F_DUPFD_CLOEXEC, 0)) < 0)
            folder = -errno;
        tree_at_close(&at);
    }
    return folder >= 0 ? 0 : folder;
}

int staging_find(struct staging *s, const struct roots *roots, mode_t output_mode, const char *path,
                 struct made_folders *made, struct error *e)
{
    *s = (struct staging){.above = -1,
                          .folder = -1,
                          .roots = roots,
                          .output_mode = output_mode & 0777u,
                          .made = made};
    (void)snprintf(s->path, sizeof s->path, "%s", path);
    for (size_t end = strlen(s->path); end > 1 && s->path[end - 1] == '/'; end--)
        s->path[end - 1] = '\0';
    (void)text_printable(s->printable, sizeof s->printable, s->path);
    if (roots_find(roots, path, &s->place, e) != 0)
        return -1;
    if (staging_is_path(s->place.path))
        return error_set(e, ERROR_REFUSED,
                         "%s has a name that torusd gives to the new files of copies: name another "
                         "target",
                         s->printable);
    char *name = strrchr(s->place.path, '/');
    bool is_root = strcmp(s->place.path, ".") == 0;
    s->is_root = is_root;
    const char *last = is_root ? "." : name != NULL ? name + 1 : s->place.path;
    if (strlen(last) > NAME_MAX)
        return error_set(e, ERROR_USAGE, "the name of target %.100s... is too long", path);
    (void)strcpy(s->target, last);
    if (name != NULL)
        *name = '\0';
    else
        (void)strcpy(s->place.path, ".");
    int result = find_above(s, name != NULL ? s->place.path : "");
    if (result == 0 && !is_root)
        result = enter_mount(s);
    beside_name_copy(s->target, s->name);
    int above =
        strcmp(s->target, ".") == 0 ? (int)strlen(s->path) : (int)(strrchr(s->path, '/') - s->path);
    (void)snprintf(s->shown, sizeof s->shown, "%.*s/%s", above, s->path, s->name);
    if (result == 0 || (result == -ENOENT && made == NULL))
        return 0;
    return error_set(e,
                     result == -ENOTDIR  ? ERROR_REFUSED
                     : result == -ENOMEM ? ERROR_MEMORY
                                         : ERROR_IO,
                     "the folder above %s cannot be opened: %s", s->printable,
                     result == -ENOTDIR ? "a part of the path is a link, or no folder"
                                        : strerror(-result));
}
