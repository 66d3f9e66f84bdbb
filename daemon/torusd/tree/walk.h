/* Walks the sources of a copy, and puts everything that it finds into a manifest, in its order, except what copies to
 * places in the sources have left there (staging_is_name()).
 *
 * Memory: the names of the folders on the way to where the walk is; files with several names (file_links.h).
 * Descriptors: at most WALK_FOLDERS_OPEN, and few more. Symbolic links are not followed. */
#pragma once

#include "daemon/torusd/disk/file_system.h"
#include "daemon/torusd/tree/patterns.h"
#include "daemon/torusd/tree/shown_path.h"
#include "daemon/torusd/tree/walk_entry.h"

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
