/* The file-system calls that daemon/files makes: all of them relative to a folder's descriptor,
 * none of them through a symbolic link. The daemon has the system's (file_system_posix.c); tests
 * and the simulator bring their own, with failures and crashes.
 *
 * Every call may block: they are made in jobs (base/work.h), several at once, or when the daemon
 * starts. Results are 0 or a count or a descriptor, or -errno. */
#ifndef TORUSD_FILES_SYSTEM_FILE_SYSTEM_H
#define TORUSD_FILES_SYSTEM_FILE_SYSTEM_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

#define FILE_SYSTEM_TOP (-1) /* in place of a folder: the path is absolute */

enum file_kind { FILE_REGULAR, FILE_FOLDER, FILE_OTHER };

struct file_status {
    enum file_kind kind;
    uint64_t size;
    struct timespec modified;
    uint64_t device, number; /* together: which file it is */
    mode_t mode;             /* permissions, with set-user-ID, set-group-ID and sticky bits */
    uid_t owner;
    gid_t group;
};

/* Access-control lists, as the kernel passes them (<linux/posix_acl_xattr.h>). */
enum acl { ACL_ACCESS, ACL_DEFAULT };
#define ACL_MOST 1024 /* bytes: 127 entries */

struct file_system {
    void *context;

    /* For the log when the daemon starts, or NULL: what this system lacks. */
    const char *limitation;

    /* The absolute path, free of links, of something that exists. `out` has room for PATH_MAX. */
    int (*resolve)(void *context, const char *path, char *out);

    /* Opens an existing folder or, for reading, an existing file of any kind; never waits for the
     * other end of a FIFO. `path` is relative and may have several components, "." is the folder
     * itself. -ELOOP where one of them is a link, -EXDEV where ".." leads out of the folder. The
     * caller owns the descriptor. */
    int (*open_folder)(void *context, int folder, const char *path);
    int (*open_file)(void *context, int folder, const char *path);

    /* Directly in the folder; -EEXIST if the name is taken. create_file() opens it for writing,
     * reopen_file() what it has created. */
    int (*create_file)(void *context, int folder, const char *name, mode_t mode);
    int (*reopen_file)(void *context, int folder, const char *name);
    int (*make_folder)(void *context, int folder, const char *name, mode_t mode);

    /* Both names directly in the folder. Replaces a file by a file and an empty folder by a folder.
     */
    int (*rename)(void *context, int folder, const char *from, const char *to);
    /* Two names that exist change places, at once. -EINVAL where the file system cannot do it. */
    int (*swap)(void *context, int folder, const char *one, const char *other);
    int (*remove_file)(void *context, int folder, const char *name);
    int (*remove_folder)(void *context, int folder, const char *name); /* an empty one */

    /* Calls each() for every name directly in the folder but "." and "..", in no order. */
    int (*list)(void *context, int folder, void (*each)(void *argument, const char *name),
                void *argument);

    /* Of what is open; of a name directly in the folder, where a link is FILE_OTHER. */
    int (*status)(void *context, int file, struct file_status *out);
    int (*status_at)(void *context, int folder, const char *name, struct file_status *out);

    /* Both may do less than was asked for. */
    /* Of what is open; -EPERM if they are not this process's to set. A mode is set as it is, whatever
     * the umask. */
    int (*set_owner)(void *context, int file, uid_t owner, gid_t group);
    int (*set_mode)(void *context, int file, mode_t mode);

    /* An access-control list of what is open. Reading returns its length, 0 if there is none or the
     * file system has none. Writing 0 bytes removes it. */
    ssize_t (*read_acl)(void *context, int file, enum acl which, void *bytes, size_t most);
    int (*write_acl)(void *context, int file, enum acl which, const void *bytes, size_t length);

    /* Whether this process could remove or replace what has the name, or with NULL anything, in the
     * folder, as far as that can be known without doing it. 0, or -errno with *why, a text that
     * follows the name of what it is about. */
    int (*check_removable)(void *context, int folder, const char *name, const char **why);

    /* 0 if this process may list, change and enter an open folder, or -errno. */
    int (*check_writable)(void *context, int folder);

    ssize_t (*read)(void *context, int file, const struct iovec *piece, int count, uint64_t offset);
    ssize_t (*write)(void *context, int file, const struct iovec *piece, int count,
                     uint64_t offset);

    /* What is behind that many bytes of a file goes. */
    int (*truncate)(void *context, int file, uint64_t size);

    /* Does not block and may be called on the loop: reads what is in memory. -EAGAIN if that is
     * nothing, -EOPNOTSUPP if the file system cannot tell. */
    ssize_t (*read_cached)(void *context, int file, void *data, size_t length, uint64_t offset);

    /* Whether read() and write() of what is in this folder, or of this file, never wait for a disk,
     * so that they may be called on the loop: a tmpfs on a system without swap. */
    bool (*in_memory)(void *context, int file);

    /* Contents to the disk; of a folder: its names. start_sync() only begins, so that several files
     * are under way when the first is waited for; what fails there, sync() will tell. */
    int (*sync)(void *context, int file);
    void (*start_sync)(void *context, int file);

    /* Until it is closed nobody else can lock it. -EWOULDBLOCK if somebody has. */
    int (*lock)(void *context, int file);

    /* 1 if what is in this folder does not survive a reboot (tmpfs, ramfs), 0 if it does. */
    int (*is_volatile)(void *context, int folder);

    void (*close)(void *context, int file);
};

/* Moves behind what a read() or write() has done, less than was asked for maybe. */
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

/* The system's calls. Paths are opened by openat2; on a kernel without it (before Linux 5.6) one
 * component after the other, to the same effect. */
const struct file_system *file_system_posix(void);

/* The same without openat2 in any case. */
const struct file_system *file_system_posix_by_steps(void);

#endif
