/* The sources of a reader, and the files below them. */
#ifndef TORUSD_TREE_READER_SOURCES_H
#define TORUSD_TREE_READER_SOURCES_H

#include "daemon/files/places/roots.h"
#include "daemon/tree/entry_numbers.h"
#include "daemon/tree/manifest.h"
#include "daemon/tree/walk.h"

struct sources {
    const struct file_system *system;
    struct walk_source *source; /* in the order of a manifest */
    uint32_t count;
    char **text; /* names and paths, to be freed */
    size_t texts;
    struct entry_numbers *numbers;
};

/* Opens all sources. Returns 0, or -1 with *e; the caller gives *s to sources_close() in any case. */
int sources_open(struct sources *s, const struct roots *roots,
                 const struct tree_read_options *options, struct error *e);
void sources_close(struct sources *s);

/* Opens the file of an entry, and checks that it is the one that was found. Returns a descriptor, which the caller closes,
 * or -1 with *e. */
int source_open_file(const struct sources *s, const struct entry *entry, struct error *e);

/* Checks that a file, folder or link is still as its entry says. Returns 0, or -1 with *e. */
int source_check(const struct sources *s, const struct entry *entry, struct error *e);

/* Fills *e: reading the file of an entry has failed with errno (0: it has ended too early). Returns -1. */
int source_failed(const struct sources *s, const struct entry *entry, struct error *e);

#endif
