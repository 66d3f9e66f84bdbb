/* What files have besides contents: owner, mode, times, extended attributes (access-control lists among them); and what the
 * file system of a target makes of it. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "daemon/torusd/tree/manifest.h"

/* --- what the file system of a target makes of metadata ---
 *
 * Some have times to the second or to two seconds, or only those of some centuries; some have no modes or owners; and a
 * process in a user namespace cannot give files to any owner, or name any in a list of permissions. If that counted as a
 * difference, files would be read and sent again at each copy. So what differs is set at a file without a name on the same
 * file system, and what is stored there is compared. Not for several threads at once. */

#define STORED_OWNERS 16u

struct stored {
    int file;                        /* for trials; -1: none could be made */
    uint64_t granularity;            /* of times, nanoseconds: 1 if they are exact */
    bool vague;                      /* nothing is known about times, and no trial is possible */
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

/* --- owner, mode, times --- */

/* How entries are treated in a tree, and what could not be set there. Used by several threads at once. */
struct metadata_rules {
    struct stored *stored;      /* what the file system of the target stores; NULL: everything */
    bool may_own;               /* this process may give files to any owner */
    _Atomic uint64_t not_owned; /* entries whose owner could not be set */
    _Atomic uint64_t not_attributed; /* entries whose attributes could not be set */
};

/* A file, by its descriptor, or by its name in a folder. */
struct metadata_place {
    int file; /* open for reading or writing; -1: by name */
    int folder;
    const char *name;
    bool
        fresh; /* it was made just now, so that it has no attributes that the file system did not give it */
    bool no_attributes; /* attributes have been set before */
};

void metadata_rules_init(struct metadata_rules *rules);

/* Whether a file with the time `found` has what the target stores of `wanted`. */
bool metadata_same_time(const struct metadata_rules *rules, struct timespec found,
                        struct timespec wanted);
/* Whether owner, mode, attributes or, except of files, the time of the existing *st differ from those of an entry of the
 * same kind, as far as this process may set them and the file system stores them. Not for several threads at once. Returns
 * 1, 0 or -errno. Counts what cannot be set. */
int metadata_differ(struct metadata_rules *rules, const struct metadata_place *place,
                    const struct stat *st, const struct entry *entry);

/* Whether a file is immutable or append-only, so that its metadata cannot be changed. */
bool metadata_is_fixed(const struct metadata_place *place);

/* Sets what differs: owner, attributes, mode, time, in this order. *st: its status before. An owner that may not be set
 * is counted, and so are mode and time that only the owner may set; set-ID bits are left out then. Returns 0 or
 * -errno. */
int metadata_set(struct metadata_rules *rules, const struct metadata_place *place,
                 const struct stat *st, const struct entry *entry);

/* Takes from a folder the list of permissions that new files in it would inherit. */
void metadata_clear_defaults(int folder);

/* --- extended attributes ---
 *
 * Those of a file, folder or link are in the form of struct entry: of users ("user."), access-control lists,
 * and, as far as they can be read, "trusted." and "security.capability". Other "security." and "system." attributes belong
 * to a machine, and stay there. */

struct attribute_reader {
    char *names;
    size_t names_room;
    uint8_t *bytes; /* what was read last */
    size_t room;
};

/* Reads the attributes of an open file or folder; of a name in an open folder, such as a symbolic link, if `file` is -1.
 * Returns 0 with *length; the bytes stay until the next call. Returns -1 with errno: E2BIG for more than
 * MANIFEST_ATTRIBUTES_MOST bytes. */
int attributes_read(struct attribute_reader *r, int file, int folder, const char *name,
                    uint32_t *length);
void attribute_reader_free(struct attribute_reader *r);

/* Whether a file has other attributes than an entry, among those that can be set here. *refused: the entry has some that
 * cannot be. Returns 1, 0 or -errno. */
int attributes_of_differ(const struct metadata_rules *rules, const struct metadata_place *place,
                         const struct entry *entry, bool *refused);
/* Removes those that the entry lacks, and sets the others. *refused: some could not be set. Returns 0 or -errno. */
int attributes_of_set(const struct metadata_rules *rules, const struct metadata_place *place,
                      const struct entry *entry, bool *refused);
