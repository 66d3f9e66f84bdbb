/* The file-system calls that exchanges of files make. All are relative to a folder's descriptor, and none
 * follows a symbolic link. The daemon uses the system's calls (file_system_posix.c); tests and the
 * simulator have their own, with failures and crashes.
 *
 * Every call may block, and is made in a job (base/work.h), several at once, or when the daemon starts.
 * Results are 0 or a count or a descriptor, or -errno. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define FILE_SYSTEM_TOP (-1) /* in place of a folder: the path is absolute */

enum file_kind { FILE_REGULAR, FILE_FOLDER, FILE_LINK, FILE_OTHER };

struct file_status {
    enum file_kind kind;
    uint64_t size;
    struct timespec modified, changed; /* contents; anything: no program can set that time */
    uint64_t device, number;           /* together they identify the file */
    mode_t mode; /* permissions, with set-user-ID, set-group-ID and sticky bits */
    uid_t owner;
    gid_t group;
};

/* Access-control lists, as the kernel passes them (<linux/posix_acl_xattr.h>). */
enum acl { ACL_ACCESS, ACL_DEFAULT };
#define ACL_MOST 1024 /* bytes: 127 entries */

struct file_system {
    void *context;

    /* What this system lacks, for the log when the daemon starts; or NULL. */
    const char *limitation;

    /* Writes the absolute path, without links, of an existing file or folder to `out`, which has room for
     * PATH_MAX bytes. */
    int (*resolve)(void *context, const char *path, char *out);

    /* Opens an existing folder or, for reading, an existing file of any kind; never waits for the other end
     * of a FIFO. `path` is relative and may have several components, "." is the folder itself. -ELOOP if one
     * of them is a link, -EXDEV if ".." leads out of the folder. The caller owns the descriptor. */
    int (*open_folder)(void *context, int folder, const char *path);
    int (*open_file)(void *context, int folder, const char *path);

    /* `name` is directly in the folder; -EEXIST if it is taken. create_file() opens the new file for
     * writing; reopen_file() opens a file that create_file() has made. */
    int (*create_file)(void *context, int folder, const char *name, mode_t mode);
    int (*reopen_file)(void *context, int folder, const char *name);
    int (*make_folder)(void *context, int folder, const char *name, mode_t mode);

    /* Both names directly in the folder. Replaces a file by a file and an empty folder by a folder.
     */
    int (*rename)(void *context, int folder, const char *from, const char *to);
    /* Exchanges two existing names atomically. -EINVAL if the file system cannot do it. */
    int (*swap)(void *context, int folder, const char *one, const char *other);
    int (*remove_file)(void *context, int folder, const char *name);
    int (*remove_folder)(void *context, int folder, const char *name); /* must be empty */

    /* Calls each() for every name directly in the folder, except "." and "..", in any order. */
    int (*list)(void *context, int folder, void (*each)(void *argument, const char *name),
                void *argument);

    /* The status of an open file or folder; or of a name directly in the folder, where a link is
     * FILE_LINK. */
    int (*status)(void *context, int file, struct file_status *out);
    int (*status_at)(void *context, int folder, const char *name, struct file_status *out);

    /* Set the owner or mode of an open file or folder; -EPERM if this process may not. A mode is set
     * exactly, whatever the umask. */
    int (*set_owner)(void *context, int file, uid_t owner, gid_t group);
    int (*set_mode)(void *context, int file, mode_t mode);

    /* Read or write an access-control list of an open file or folder. Reading returns its length, 0 if
     * there is none or the file system has none. Writing 0 bytes removes the list. */
    ssize_t (*read_acl)(void *context, int file, enum acl which, void *bytes, size_t most);
    int (*write_acl)(void *context, int file, enum acl which, const void *bytes, size_t length);

    /* Whether this process could remove or replace the entry with this name in the folder (any entry, if
     * `name` is NULL), as far as it can tell without trying. Returns 0, or -errno with *why, a text such as
     * "is a mount point", to be written behind the name. */
    int (*check_removable)(void *context, int folder, const char *name, const char **why);

    /* 0 if this process may list, change and enter an open folder, or -errno. */
    int (*check_writable)(void *context, int folder);

    ssize_t (*read)(void *context, int file, const struct iovec *piece, int count, uint64_t offset);
    ssize_t (*write)(void *context, int file, const struct iovec *piece, int count,
                     uint64_t offset);

    /* Cuts a file off after `size` bytes. */
    int (*truncate)(void *context, int file, uint64_t size);

    /* Reads only bytes that are in memory; does not block, and may be called on the loop. -EAGAIN if none
     * are, -EOPNOTSUPP if the file system cannot tell. */
    ssize_t (*read_cached)(void *context, int file, void *data, size_t length, uint64_t offset);

    /* Whether read() and write() of this file, or of files in this folder, never wait for a disk, so that
     * they may be called on the loop: a tmpfs on a system without swap. */
    bool (*in_memory)(void *context, int file);

    /* Writes the contents of a file, or the names in a folder, to the disk. start_sync() only starts that, so
     * that the disk writes several files before the caller waits for the first; sync() reports its
     * failures. */
    int (*sync)(void *context, int file);
    void (*start_sync)(void *context, int file);

    /* Locks a file or folder until it is closed. -EWOULDBLOCK if another process has locked it. */
    int (*lock)(void *context, int file);

    /* 1 if the contents of this folder do not survive a reboot (tmpfs, ramfs), 0 if they do. */
    int (*is_volatile)(void *context, int folder);

    void (*close)(void *context, int file);
};

/* Closes a descriptor, unless it is negative, and sets it to -1. */
static inline void file_system_close(const struct file_system *files, int *file)
{
    if (*file >= 0)
        files->close(files->context, *file);
    *file = -1;
}

/* Skips the `done` bytes that a read() or write() has transferred, which may be fewer than requested. */
static inline void file_system_advance(struct iovec **piece, int *count, size_t done)
{
    while (*count > 0 && done >= (*piece)->iov_len) {
        done -= (*piece)->iov_len;
        ++*piece;
        --*count;
    }
    if (*count > 0) {
        (*piece)->iov_base = (char *)(*piece)->iov_base + done;
        (*piece)->iov_len -= done;
    }
}

/* Returns the system's calls. Paths are opened by openat2; on a kernel without it (before Linux 5.6) one
 * component after the other, with the same effect. */
const struct file_system *file_system_posix(void);

/* Returns the system's calls, always without openat2. */
const struct file_system *file_system_posix_by_steps(void);

/* As check_removable() of the system's calls. */
int file_system_check_removable(int folder, const char *name, const char **why);

/* Whether this thread has a capability (CAP_CHOWN ...). */
bool file_system_has_capability(int capability);
