/* What the file system of a target makes of metadata. Some have times to the second or to two seconds, or only those of some
 * centuries; some have no modes or owners; and a process in a user namespace cannot give files to any owner, or name any in
 * a list of permissions. If that counted as a difference, files would be read and sent again at each copy.
 *
 * So what differs is set at a file without a name on the same file system, and what is stored there is compared. Not for
 * several threads at once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#define STORED_OWNERS 16u

struct stored {
    int file;                        /* for trials; -1: none could be made */
    uint64_t granularity;            /* of times, nanoseconds: 1 if they are exact */
    bool modes;                      /* the file system has modes */
    struct timespec asked, answered; /* the last time that was tried */
    struct stored_owner {
        uid_t owner;
        gid_t group;
        bool can;
    } owner[STORED_OWNERS]; /* a ring */
    unsigned owners;
};

/* Looks at the file system of an open folder (O_PATH); `staging` is a folder there in which files may be made, or -1.
 * Never fails: without trials, everything is taken for stored as it is. */
void stored_open(struct stored *s, int folder, int staging);
void stored_close(struct stored *s);

/* Whether `found`, the time of a file, is what this file system stores if the time is set to `wanted`. */
bool stored_same_time(struct stored *s, struct timespec found, struct timespec wanted);
/* Whether a file can be given to this owner and group here. */
bool stored_can_own(struct stored *s, uid_t owner, gid_t group);
/* Finds what this file system stores of an extended attribute. Writes at most `most` bytes to `value`, and returns
 * their number; or STORED_REFUSED if the attribute cannot be set here, or STORED_UNKNOWN if no trial was possible. */
#define STORED_REFUSED (-1)
#define STORED_UNKNOWN (-2)
ssize_t stored_attribute(struct stored *s, const char *name, const void *wanted, size_t length,
                         void *value, size_t most);
