/* What files have besides contents: owner, mode, times, extended attributes (access-control lists among them). */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "daemon/torusd/tree/manifest.h"
#include "daemon/torusd/tree/stored.h"

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
 * same kind, as far as this process may set them and the file system stores them. Not for several threads at once. Returns 1, 0 or -errno. Counts what cannot be set. */
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
