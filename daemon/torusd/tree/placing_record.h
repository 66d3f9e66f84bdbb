/* What the parts of placing share. */
#pragma once

#include "daemon/torusd/tree/placing.h"

/* Whether a path is in the new folder that is being built. */
bool placing_is_in_build(const struct placing *p, const char *path);
/* The tree in which an entry is made: the target, or the new folder that is being built; *path is its path there. */
struct tree_at *placing_tree(struct placing *p, const char *whole, const char **path);

/* Removes what stands in the way of an entry of another kind: a file; a folder only if it is empty, or if the copy
 * deletes. Returns 0, or -1 with *e. */
int placing_clear_way(struct placing *p, struct tree_at *at, const char *path, struct error *e);

/* Whether the entry was found unchanged when the trees were compared. */
bool placing_is_same(const struct placing *p, const struct entry *entry);
/* Where it is counted that an owner or attributes could not be set: once for each entry. */
struct metadata_rules *placing_rules(struct placing *p, const struct entry *entry);

/* Put an entry in place whose folder is there. Return 0, or -1 with *e. */
int placing_file(struct placing *p, const struct entry *entry, struct error *e);
int placing_symlink(struct placing *p, const struct entry *entry, struct error *e);
int placing_hardlink(struct placing *p, const struct entry *entry, struct error *e);
