/* Comparing the contents of a file with the digest of an entry. */
#pragma once

#include "daemon/torusd/tree/file_data.h"

/* Whether the file with this name, which has the size of the entry, has its contents: data by its digest, and zeros where
 * the entry has holes. Returns 1, 0 or -errno. */
int compare_contents(int folder, const char *name, const struct entry *entry,
                     struct tree_progress *progress);

/* The same for an open file. */
int compare_contents_of(int file, const struct entry *entry, struct tree_progress *progress);
