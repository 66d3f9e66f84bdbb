/* Entries of a manifest, from what a walk finds. */
#pragma once

#include <sys/stat.h>

#include "daemon/torusd/disk/file_system.h"
#include "daemon/torusd/tree/changing.h"
#include "daemon/torusd/tree/inodes.h"
#include "daemon/torusd/tree/manifest.h"
#include "daemon/torusd/tree/metadata.h"
#include "daemon/torusd/tree/patterns.h"
#include "daemon/torusd/tree/tree_files.h"

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
    bool changed;      /* the open file has changed, and is left out later */
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
/* With errno: 0, and errors that mean that there is no such file, say that it was changed. */
int found_unreadable(const char *above, const char *below, struct error *e);

/* Walks the sources of a copy, and puts everything that it finds into a manifest, in its order, except what copies to
 * places in the sources have left there (staging_is_name()).
 *
 * Memory: the names of the folders on the way to where the walk is; files with several names (inodes.h).
 * Descriptors: at most WALK_FOLDERS_OPEN, and few more. Symbolic links are not followed. */

#define WALK_FOLDERS_OPEN                                                                          \
    32u /* folders that stay open; others are opened again when the walk returns to them */

struct walk_source {
    const char *name; /* in the manifest; "": the only source, which becomes the entry "" */
    const char *path; /* for errors */
    int file;         /* open file or folder; stays open */
};

struct walk {
    /* Set by the caller. */
    const struct file_system *system;
    const struct walk_source *source; /* by name, in the order of a manifest */
    uint32_t sources;
    const struct patterns *patterns;
    struct entry_builder builder;
    /* Opens what a link leads to, for reading; `below` is the path of the link below the source. Returns a descriptor, or
     * -1 with *e. NULL: links are copied as links. */
    int (*follow)(void *context, const struct walk_source *source, const char *below,
                  struct error *e);
    void *context;
    bool into; /* the sources keep their names */
    /* Links that lead to places which the copy does not have; and the first of them. */
    uint64_t links_out;
    struct shown_path first_link_out;
    /* Sockets, FIFOs and devices, which are not copied; and the first of them. */
    uint64_t left_out;
    struct shown_path first_left_out;
};

/* Returns 0, or -1 with *e, which names the file; ERROR_CANCELLED if progress->stop is set. */
int walk(struct walk *w, struct error *e);
