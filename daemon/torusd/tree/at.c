#include "daemon/torusd/tree/at.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/torusd/disk/file_bytes.h"
#include "daemon/torusd/disk/file_system.h"
#include "proto/text.h"

void tree_at_init(struct tree_at *t, int above, const char *name, const char *shown)
{
    t->above = above;
    (void)snprintf(t->name, sizeof t->name, "%s", name);
    t->shown = shown;
    t->kept = 0;
    t->deep = -1;
    t->deep_end = 0;
    t->path[0] = '\0';
}

static void close_deep(struct tree_at *t)
{
    file_close(&t->deep);
}

void tree_at_close(struct tree_at *t)
{
    close_deep(t);
    while (t->kept > 0)
        (void)close(t->folder[--t->kept]);
}

/* Whether the first `end` bytes of a path are a folder on the way to, or equal to, the first `length` bytes. */
static bool leads_to(const struct tree_at *t, size_t end, const char *path, size_t length)
{
    return end <= length && memcmp(t->path, path, end) == 0 &&
           (end == 0 || end == length || path[end] == '/');
}

static int open_name(int folder, const char *name, size_t length)
{
    char copy[NAME_MAX + 1];

    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(copy, name, length);
    copy[length] = '\0';
    int file = openat(folder, copy, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return errno == ELOOP ? -ENOTDIR : -errno;
    return file;
}

/* Opens the next folder of the path behind *end. Returns its descriptor or -errno. */
static int descend(struct tree_at *t, const char *path, size_t length, size_t *end)
{
    size_t begin = *end + (*end > 0 ? 1 : 0), stop = begin;
    int above = t->deep >= 0 ? t->deep : t->folder[t->kept - 1];

    while (stop < length && path[stop] != '/')
        stop++;
    int folder = open_name(above, path + begin, stop - begin);
    if (folder < 0)
        return folder;
    memcpy(t->path, path, stop);
    *end = stop;
    if (t->kept < TREE_AT_KEPT) {
        t->end[t->kept] = stop;
        t->folder[t->kept++] = folder;
    } else {
        close_deep(t);
        t->deep = folder;
        t->deep_end = stop;
    }
    return folder;
}

int tree_at_folder(struct tree_at *t, const char *path, size_t length)
{
    size_t end;
    int folder;

    if (t->above < 0)
        return -ENOENT;
    if (length > MANIFEST_PATH_MOST)
        return -ENAMETOOLONG;
    if (t->deep >= 0 && !leads_to(t, t->deep_end, path, length))
        close_deep(t);
    while (t->kept > 1 && !leads_to(t, t->end[t->kept - 1], path, length))
        (void)close(t->folder[--t->kept]);
    if (t->kept == 0) {
        folder = open_name(t->above, t->name, strlen(t->name));
        if (folder < 0)
            return folder;
        t->end[0] = 0;
        t->folder[t->kept++] = folder;
    }
    folder = t->deep >= 0 ? t->deep : t->folder[t->kept - 1];
    end = t->deep >= 0 ? t->deep_end : t->end[t->kept - 1];
    while (end < length && folder >= 0)
        folder = descend(t, path, length, &end);
    return folder;
}

int tree_at_parent(struct tree_at *t, const char *path, const char **name)
{
    const char *slash = strrchr(path, '/');

    if (path[0] == '\0') {
        *name = t->name;
        return t->above >= 0 ? t->above : -ENOENT;
    }
    *name = slash != NULL ? slash + 1 : path;
    return tree_at_folder(t, path, slash != NULL ? (size_t)(slash - path) : 0);
}

int tree_at_status(int folder, const char *name, struct stat *st, bool *mount)
{
    struct statx x;

    if (statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &x) != 0)
        return -errno;
    *st = (struct stat){.st_mode = x.stx_mode,
                        .st_uid = x.stx_uid,
                        .st_gid = x.stx_gid,
                        .st_size = (off_t)x.stx_size,
                        .st_blocks = (blkcnt_t)x.stx_blocks,
                        .st_ino = x.stx_ino,
                        .st_nlink = x.stx_nlink,
                        .st_dev = makedev(x.stx_dev_major, x.stx_dev_minor),
                        .st_mtim = {x.stx_mtime.tv_sec, x.stx_mtime.tv_nsec},
                        .st_ctim = {x.stx_ctime.tv_sec, x.stx_ctime.tv_nsec}};
    *mount = (x.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
    return 0;
}

/* Whether the mode of a folder lets this process change what is in it, or the process may change the mode. Returns 0 or
 * -errno. */
static int check_mode(int folder)
{
    struct stat st;

    if (faccessat(folder, ".", W_OK | X_OK, AT_EACCESS) == 0)
        return 0;
    int error = errno;
    return error == EACCES && fstat(folder, &st) == 0 && st.st_uid == geteuid() ? 0 : -error;
}

int tree_at_check_change(const struct tree_at *t, int folder, const char *name, const char *path,
                         struct error *e)
{
    const char *why;
    char shown[200];
    int result = file_system_check_removable(folder, name, &why);

    if (result == 0) {
        result = check_mode(folder);
        why = "is in a folder that torusd may not change";
    }
    if (result < 0)
        (void)error_set(e, ERROR_REFUSED, "%s %s: %s", tree_at_shown(t, path, shown, sizeof shown),
                        why, strerror(-result));
    return result;
}

int tree_at_set_mode(int folder, mode_t mode)
{
    char path[40];

    /* fchmod() takes no O_PATH */
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
    return chmod(path, mode) == 0 ? 0 : -errno;
}

char *tree_at_shown(const struct tree_at *t, const char *path, char *out, size_t size)
{
    char whole[2 * PATH_MAX];

    (void)snprintf(whole, sizeof whole, "%s%s%s", t->shown, path[0] != '\0' ? "/" : "", path);
    return text_printable(out, size, whole);
}

int tree_at_failed(const struct tree_at *t, const char *path, const char *done, int error,
                   struct error *e)
{
    char shown[240];

    return error_set(e,
                     error == ENOMEM      ? ERROR_MEMORY
                     : error == ECANCELED ? ERROR_CANCELLED
                                          : ERROR_IO,
                     "%s cannot be %s: %s", tree_at_shown(t, path, shown, sizeof shown), done,
                     strerror(error));
}

int tree_at_refused(const struct tree_at *t, const char *path, const char *text, struct error *e)
{
    char shown[160];

    return error_set(e, ERROR_REFUSED, "%s %s", tree_at_shown(t, path, shown, sizeof shown), text);
}
