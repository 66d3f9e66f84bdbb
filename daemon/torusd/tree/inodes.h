/* The number (of the inode) of each entry's file, in a temporary file: so a reader finds out that a file was replaced. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "daemon/torusd/tree/tree_files.h"
#include "proto/error.h"

struct entry_numbers;
/* `file` is open and empty; it is closed with the numbers. NULL: no memory; then it stays open. */
struct entry_numbers *entry_numbers_new(int file);
void entry_numbers_free(struct entry_numbers *n);

/* Adds the number of the next entry. Returns 0, or -1 with *e. */
int entry_numbers_add(struct entry_numbers *n, uint64_t number, struct error *e);
/* To be called after the last one was added. */
int entry_numbers_finish(struct entry_numbers *n, struct error *e);
/* Reads a number; several threads may do so. Returns 0, or -1 with *e. */
int entry_numbers_get(const struct entry_numbers *n, uint64_t index, uint64_t *number,
                      struct error *e);

/* Files with more than one name, so that further names of a file become hard links. Memory: 24 bytes or a little more for
 * each of these files; their paths are in a temporary file. */

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
