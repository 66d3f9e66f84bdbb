/* Numbers that tell whether a folder at one node is the same as one at another node, because the nodes share a file system.
 * They are computed from what the file system says of the folder: its inode number, and the time when it was made or, if
 * that is not known, those of its last changes. Folders of two file systems practically never have the same number;
 * a folder that changes meanwhile may get another one. */
#pragma once

#include <stdint.h>

#include "daemon/torusd/copy/tree_store.h"

#define PLACE_SOURCE                                                                               \
    1u /* the lowest bit of a number that a reader tells: this is a source, not a folder above one */

/* Returns the number of the file or folder with this absolute path; its lowest bit is 0. 0: there is none. */
uint64_t place_id(const char *path);

/* Adds the numbers of a source and of the folders above it to a list of at most TREE_PLACES_MOST, each once. Returns its new
 * length. */
uint32_t place_ids_add_source(uint64_t *list, uint32_t count, const char *path);

/* How a target lies to sources of a list, on a file system that both have. */
enum place_relation {
    PLACE_APART,
    PLACE_EQUAL, /* the target is a source */
    PLACE_ABOVE, /* a source is below the target */
    PLACE_INSIDE /* the target is below a source */
};
enum place_relation place_ids_compare(const uint64_t *list, uint32_t count, const char *target);
