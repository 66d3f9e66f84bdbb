#include "daemon/torusd/files/system/permissions_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

int permissions_set_owner(void *context, int file, uid_t owner, gid_t group)
{
    (void)context;
    return result_of(fchown(file, owner, group));
}

int permissions_set_mode(void *context, int file, mode_t mode)
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

ssize_t permissions_read_acl(void *context, int file, enum acl which, void *bytes, size_t most)
{
    ssize_t length = fgetxattr(file, acl_name(which), bytes, most);

    (void)context;
    if (length < 0)
        return is_none(errno) ? 0 : -errno;
    return length;
}

int permissions_write_acl(void *context, int file, enum acl which, const void *bytes, size_t length)
{
    (void)context;
    if (length > 0)
        return result_of(fsetxattr(file, acl_name(which), bytes, length, 0));
    if (fremovexattr(file, acl_name(which)) == 0 || is_none(errno))
        return 0;
    return -errno;
}

/* --- what cannot be removed or replaced --- */

/* Whether this thread has CAP_FOWNER. */
static bool has_cap_fowner(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capget, &head, data) == 0 &&
           (data[CAP_TO_INDEX(CAP_FOWNER)].effective & CAP_TO_MASK(CAP_FOWNER)) != 0;
}

/* Whether the process may act as the owner of a file: it is the owner, or has CAP_FOWNER for the file.
 * O_NOATIME is allowed in exactly these cases, and changes nothing; but it cannot be tried with links and sockets. */
static bool acts_as_owner(int folder, const char *name, const struct statx *st)
{
    if (st->stx_uid == geteuid())
        return true;
    int file = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOATIME | O_CLOEXEC);
    if (file < 0)
        return errno != EPERM && has_cap_fowner();
    (void)close(file);
    return true;
}

static bool has_attribute(const struct statx *st, uint64_t attribute)
{
    return (st->stx_attributes & attribute) != 0;
}

int permissions_check_removable(void *context, int folder, const char *name, const char **why)
{
    struct statx above, st;

    (void)context;
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

int permissions_check_writable(void *context, int folder)
{
    (void)context;
    return result_of(faccessat(folder, ".", R_OK | W_OK | X_OK, AT_EACCESS));
}
