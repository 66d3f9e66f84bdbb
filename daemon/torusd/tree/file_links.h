/* Files with more than one name, so that further names of a file become hard links. Memory: 24 bytes or a little more for
 * each of these files; their paths are in a temporary file. */
#pragma once

#include "daemon/torusd/tree/tree_files.h"

struct file_links;
struct file_links *file_links_new(const struct tree_files *files); /* NULL: no memory */
void file_links_free(struct file_links *l);

/* Finds a file by device and number. Returns 1 with the index of its entry, and its path (room for MANIFEST_PATH_MOST + 1
 * bytes); 0: it is not known; -1 with *e. */
int file_links_find(struct file_links *l, uint64_t device, uint64_t number, uint64_t *index,
                    char *path, struct error *e);
/* Adds a file that is not known. Returns 0, or -1 with *e. */
int file_links_add(struct file_links *l, uint64_t device, uint64_t number, uint64_t index,
                   const char *path, struct error *e);
