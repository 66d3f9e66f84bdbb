/* Entries of a manifest, from what a walk finds. */
#pragma once

#include <sys/stat.h>

#include "daemon/torusd/tree/attribute_reader.h"
#include "daemon/torusd/tree/changing.h"
#include "daemon/torusd/tree/entry_numbers.h"
#include "daemon/torusd/tree/file_links.h"
#include "daemon/torusd/tree/manifest.h"

struct entry_builder {
    struct manifest_maker *maker;
    struct entry_numbers *numbers;
    struct file_links *links;
    struct attribute_reader attributes;
    struct tree_progress *progress; /* may be NULL */
    struct changing *changing;      /* may be NULL */
    bool digests;
    struct timespec latest; /* time of the file that was changed last, */
    struct timespec
        latest_coarse; /* and of those whose file systems may have no fractions of seconds */
    bool changed;      /* the file that is looked into has changed, and is left out later */
    char link[MANIFEST_PATH_MOST + 1];
};

/* A file, folder or link that was found. */
struct found {
    const char *path; /* in the manifest */
    size_t path_length;
    const char *above, *below; /* for errors: path of the source, and path below it or "" */
    struct stat st;
};

#define FOUND_CHANGED                                                                              \
    (-3) /* result of functions, with *e: something was changed while the walk looked at it */

/* Add an entry: a folder or file that is open; a symbolic link with this name in an open folder. Return 0, or -1 or
 * FOUND_CHANGED with *e, which names it. */
int build_folder(struct entry_builder *b, const struct found *f, int folder, struct error *e);
int build_file(struct entry_builder *b, const struct found *f, int file, struct error *e);
int build_symlink(struct entry_builder *b, const struct found *f, int folder, const char *name,
                  struct error *e);

/* Whether two states of a file or folder are the same: kind, number, size of files, modification time. */
bool found_is_same(const struct stat *a, const struct stat *b);
/* Whether an error (errno; 0: a file has ended too early) means that something was changed. */
bool found_says_changed(int error);

/* Fill *e. Return -1, or FOUND_CHANGED. */
int found_changed(const char *above, const char *below, struct error *e);
/* With errno: 0 and what says that there is no such file mean that it was changed. */
int found_unreadable(const char *above, const char *below, struct error *e);
