/* The sources of a reader, and the files below them. */
#pragma once

#include "daemon/torusd/disk/roots.h"
#include "daemon/torusd/tree/changing.h"
#include "daemon/torusd/tree/inodes.h"
#include "daemon/torusd/tree/manifest.h"
#include "daemon/torusd/tree/walk.h"

struct sources {
    const struct file_system *system;
    struct walk_source *source; /* in the order of a manifest */
    uint32_t count;
    char **text; /* names and paths, to be freed */
    size_t texts;
    struct entry_numbers *numbers;
    const struct roots *roots; /* borrowed */
    bool follow;               /* links below the sources are followed */
    struct changing *changing; /* what becomes of files that change; borrowed */
};

/* Opens all sources. Returns 0, or -1 with *e; the caller gives *s to sources_close() in any case. */
int sources_open(struct sources *s, const struct roots *roots,
                 const struct tree_read_options *options, struct error *e);
void sources_close(struct sources *s);

/* Opens the file of an entry, and checks that it is the one that was found, which may have grown. Returns a descriptor,
 * which the caller closes, CHANGING_LEFT_OUT, or -1 with *e. */
int source_open_file(const struct sources *s, const struct entry *entry, struct error *e);

/* Opens what a link below a source leads to, for reading. Returns a descriptor, which the caller closes, or -1 with *e. */
int source_follow(void *sources, const struct walk_source *source, const char *below,
                  struct error *e);

/* Checks that a file, folder or link is still as its entry says; *grown: it is a file that has become longer, so that its
 * first bytes have to be compared. Returns 0 (also if the file is left out), or -1 with *e. */
int source_check(const struct sources *s, const struct entry *entry, bool *grown, struct error *e);

/* Fills *e: reading the file of an entry has failed with errno (0: it has ended too early). Returns -1, or
 * CHANGING_LEFT_OUT if that means that it has changed, and such files are left out. */
int source_failed(const struct sources *s, const struct entry *entry, struct error *e);
