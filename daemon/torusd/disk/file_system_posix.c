#include "daemon/torusd/disk/file_system.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "daemon/torusd/disk/names.h"

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

/* --- owners, modes, access-control lists --- */

static int on_set_owner(void *context, int file, uid_t owner, gid_t group)
{
    (void)context;
    return result_of(fchown(file, owner, group));
}

static int on_set_mode(void *context, int file, mode_t mode)
{
    (void)context;
    return result_of(fchmod(file, mode));
}

static const char *acl_name(enum acl which)
{
    return which == ACL_DEFAULT ? "system.posix_acl_default" : "system.posix_acl_access";
}

/* Whether an error means that there is no list, or that the file system has no lists. */
static bool is_none(int error)
{
    return error == ENODATA || error == EOPNOTSUPP;
}

static ssize_t on_read_acl(void *context, int file, enum acl which, void *bytes, size_t most)
{
    ssize_t length = fgetxattr(file, acl_name(which), bytes, most);

    (void)context;
    if (length < 0)
        return is_none(errno) ? 0 : -errno;
    return length;
}

static int on_write_acl(void *context, int file, enum acl which, const void *bytes, size_t length)
{
    (void)context;
    if (length > 0)
        return result_of(fsetxattr(file, acl_name(which), bytes, length, 0));
    if (fremovexattr(file, acl_name(which)) == 0 || is_none(errno))
        return 0;
    return -errno;
}

/* --- what cannot be removed or replaced --- */

bool file_system_has_capability(int capability)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &head, data) != 0)
        return geteuid() == 0;
    return (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

/* Whether the process may act as the owner of a file: it is the owner, or has CAP_FOWNER for the file.
 * O_NOATIME is allowed in exactly these cases, and changes nothing; but it cannot be tried with links and sockets. */
static bool acts_as_owner(int folder, const char *name, const struct statx *st)
{
    if (st->stx_uid == geteuid())
        return true;
    int file = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
    if (file < 0)
        return errno != EPERM && file_system_has_capability(CAP_FOWNER);
    (void)close(file);
    return true;
}

static bool has_attribute(const struct statx *st, uint64_t attribute)
{
    return (st->stx_attributes & attribute) != 0;
}

int file_system_check_removable(int folder, const char *name, const char **why)
{
    struct statx above, st;

    if (statx(folder, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &above) != 0)
        return *why = "cannot be examined", -errno;
    if (has_attribute(&above, STATX_ATTR_IMMUTABLE) || has_attribute(&above, STATX_ATTR_APPEND))
        return *why = "is in a folder that is immutable or append-only (see chattr)", -EPERM;
    if (name == NULL)
        return 0;
    if (statx(folder, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &st) != 0)
        return *why = "cannot be examined", -errno;
    /* since Linux 5.8; before that, the device number finds most mount points */
    if (has_attribute(&st, STATX_ATTR_MOUNT_ROOT))
        return *why = "is a mount point, which cannot be replaced: name a folder in it", -EBUSY;
    if (st.stx_dev_major != above.stx_dev_major || st.stx_dev_minor != above.stx_dev_minor)
        return *why = "is on another file system than the folder above it, so it cannot be "
                      "replaced: name a folder in it",
               -EXDEV;
    if (has_attribute(&st, STATX_ATTR_IMMUTABLE) || has_attribute(&st, STATX_ATTR_APPEND))
        return *why = "is immutable or append-only (see chattr)", -EPERM;
    if ((above.stx_mode & S_ISVTX) != 0 && above.stx_uid != geteuid() &&
        !acts_as_owner(folder, name, &st))
        return *why = "belongs to another user, and the folder above it is sticky", -EPERM;
    return 0;
}

static int on_check_removable(void *context, int folder, const char *name, const char **why)
{
    (void)context;
    return file_system_check_removable(folder, name, why);
}

static int on_check_writable(void *context, int folder)
{
    (void)context;
    return result_of(faccessat(folder, ".", R_OK | W_OK | X_OK, AT_EACCESS));
}

/* --- files and folders --- */

static int folder_of(int folder)
{
    return folder == FILE_SYSTEM_TOP ? AT_FDCWD : folder;
}

static int on_resolve(void *context, const char *path, char *out)
{
    (void)context;
    return realpath(path, out) != NULL ? 0 : -errno;
}

static int open_by_openat2(int folder, const char *path, int flags)
{
    const struct open_how how = {.flags = (unsigned)flags,
                                 .resolve =
                                     RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    long result;

    do /* EAGAIN: a component was renamed during the call */
        result = syscall(SYS_openat2, folder, path, &how, sizeof how);
    while (result < 0 && (errno == EAGAIN || errno == EINTR));
    return result < 0 ? -errno : (int)result;
}

/* Opens a file or folder that must not be a link. Returns -ELOOP for a link; O_NOFOLLOW alone would give
 * ENOTDIR if a folder is requested. */
static int open_one(int folder, const char *name, int flags)
{
    struct stat st;
    int fd = openat(folder, name, flags | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    int error = errno;
    if (error == ENOTDIR && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(st.st_mode))
        error = ELOOP;
    return -error;
}

static int open_by_steps(int folder, const char *path, int flags)
{
    char copy[PATH_MAX], *rest = copy, *name;
    int at = folder, next;

    if (strlen(path) >= sizeof copy)
        return -ENAMETOOLONG;
    if (path[0] == '/')
        return -EXDEV;
    (void)strcpy(copy, path);
    while ((name = strsep(&rest, "/")) != NULL) {
        if (strcmp(name, "..") == 0)
            next = -EXDEV;
        else
            next = open_one(at, *name != '\0' ? name : ".",
                            rest != NULL ? O_PATH | O_DIRECTORY : flags);
        if (at != folder)
            (void)close(at);
        if (next < 0)
            return next;
        at = next;
    }
    return at;
}

/* `context` of the functions below points to a function of this type. */
typedef int opener_fn(int folder, const char *path, int flags);
struct opener {
    opener_fn *open;
};
static const struct opener at_once = {open_by_openat2}, by_steps = {open_by_steps};

static int open_beneath(void *context, int folder, const char *path, int flags)
{
    if (folder == FILE_SYSTEM_TOP)
        return result_of(open(path, flags));
    return ((const struct opener *)context)->open(folder, path, flags);
}

static int on_open_folder(void *context, int folder, const char *path)
{
    return open_beneath(context, folder, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int on_open_file(void *context, int folder, const char *path)
{
    return open_beneath(context, folder, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static int on_create_file(void *context, int folder, const char *name, mode_t mode)
{
    (void)context;
    return result_of(
        openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
}

static int on_reopen_file(void *context, int folder, const char *name)
{
    (void)context;
    return result_of(openat(folder, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC));
}

static int on_make_folder(void *context, int folder, const char *name, mode_t mode)
{
    (void)context;
    return result_of(mkdirat(folder_of(folder), name, mode));
}

static int on_rename(void *context, int folder, const char *from, const char *to)
{
    (void)context;
    return result_of(renameat(folder, from, folder, to));
}

static int on_swap(void *context, int folder, const char *one, const char *other)
{
    (void)context;
    return result_of(renameat2(folder, one, folder, other, RENAME_EXCHANGE));
}

static int on_remove_file(void *context, int folder, const char *name)
{
    (void)context;
    return result_of(unlinkat(folder, name, 0));
}

static int on_remove_folder(void *context, int folder, const char *name)
{
    (void)context;
    return result_of(unlinkat(folder, name, AT_REMOVEDIR));
}

static int on_list(void *context, int folder, void (*each)(void *argument, const char *name),
                   void *argument)
{
    struct names names;
    int result = names_read(&names, folder);

    (void)context;
    for (size_t i = 0; i < names.count && result == 0; i++)
        each(argument, names_get(&names, i));
    names_free(&names);
    return result;
}

static void fill_status(const struct stat *st, struct file_status *out)
{
    *out = (struct file_status){
        .kind = S_ISREG(st->st_mode)   ? FILE_REGULAR
                : S_ISDIR(st->st_mode) ? FILE_FOLDER
                : S_ISLNK(st->st_mode) ? FILE_LINK
                                       : FILE_OTHER,
        .size = (uint64_t)st->st_size,
        .modified = st->st_mtim,
        .changed = st->st_ctim,
        .device = st->st_dev,
        .number = st->st_ino,
        .mode = st->st_mode & 07777,
        .owner = st->st_uid,
        .group = st->st_gid,
    };
}

static int on_status(void *context, int file, struct file_status *out)
{
    struct stat st;

    (void)context;
    if (fstat(file, &st) != 0)
        return -errno;
    fill_status(&st, out);
    return 0;
}

static int on_status_at(void *context, int folder, const char *name, struct file_status *out)
{
    struct stat st;

    (void)context;
    if (fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return -errno;
    fill_status(&st, out);
    return 0;
}

static ssize_t on_read(void *context, int file, const struct iovec *piece, int count,
                       uint64_t offset)
{
    ssize_t result;

    (void)context;
    do
        result = count == 1 ? pread(file, piece->iov_base, piece->iov_len, (off_t)offset)
                            : preadv(file, piece, count, (off_t)offset);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static ssize_t on_read_cached(void *context, int file, void *data, size_t length, uint64_t offset)
{
    const struct iovec piece = {data, length};
    ssize_t result = preadv2(file, &piece, 1, (off_t)offset, RWF_NOWAIT);

    (void)context;
    return result < 0 ? -errno : result;
}

static ssize_t on_write(void *context, int file, const struct iovec *piece, int count,
                        uint64_t offset)
{
    ssize_t result;

    (void)context;
    do
        result = count == 1 ? pwrite(file, piece->iov_base, piece->iov_len, (off_t)offset)
                            : pwritev(file, piece, count, (off_t)offset);
    while (result < 0 && errno == EINTR);
    return result < 0 ? -errno : result;
}

static int on_sync(void *context, int file)
{
    (void)context;
    return result_of(fsync(file));
}

static int on_truncate(void *context, int file, uint64_t size)
{
    (void)context;
    return result_of(ftruncate(file, (off_t)size));
}

static void on_start_sync(void *context, int file)
{
    (void)context;
    (void)sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
}

static int on_lock(void *context, int file)
{
    (void)context;
    return result_of(flock(file, LOCK_EX | LOCK_NB));
}

static int on_is_volatile(void *context, int folder)
{
    struct statfs st;

    (void)context;
    if (fstatfs(folder, &st) != 0)
        return -errno;
    return st.f_type == TMPFS_MAGIC || st.f_type == RAMFS_MAGIC;
}

static bool on_in_memory(void *context, int file)
{
    struct sysinfo system;

    return on_is_volatile(context, file) == 1 && sysinfo(&system) == 0 && system.totalswap == 0;
}

static void on_close(void *context, int file)
{
    (void)context;
    (void)close(file);
}

#define CALLS                                                                                      \
    .resolve = on_resolve, .open_folder = on_open_folder, .open_file = on_open_file,               \
    .create_file = on_create_file, .reopen_file = on_reopen_file, .make_folder = on_make_folder,   \
    .rename = on_rename, .read_cached = on_read_cached, .start_sync = on_start_sync,               \
    .remove_file = on_remove_file, .remove_folder = on_remove_folder, .list = on_list,             \
    .status = on_status, .status_at = on_status_at, .read = on_read, .write = on_write,            \
    .sync = on_sync, .lock = on_lock, .is_volatile = on_is_volatile, .in_memory = on_in_memory,    \
    .truncate = on_truncate, .close = on_close, .swap = on_swap, .set_owner = on_set_owner,        \
    .set_mode = on_set_mode, .read_acl = on_read_acl, .write_acl = on_write_acl,                   \
    .check_removable = on_check_removable, .check_writable = on_check_writable

const struct file_system *file_system_posix_by_steps(void)
{
    static const struct file_system calls = {
        .context = (void *)(uintptr_t)&by_steps,
        .limitation = "the system has no openat2 (Linux 5.6 or later): paths below data_roots are "
                      "opened one component after the other",
        CALLS};

    return &calls;
}

const struct file_system *file_system_posix(void)
{
    static const struct file_system calls = {.context = (void *)(uintptr_t)&at_once, CALLS};
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC};
    long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof how);

    if (fd < 0)
        return file_system_posix_by_steps();
    (void)close((int)fd);
    return &calls;
}
