/* Folders on the way to the entry that a walk through a manifest has reached. A folder gets its owner, mode and time when
 * the walk has left it: before, its mode could keep this process out, and its time would change. */
#pragma once

#include "daemon/torusd/tree/at.h"
#include "daemon/torusd/tree/metadata.h"

struct folder_level {
    size_t length; /* of its path */
    struct entry entry;
    struct metadata_rules *rules;
};

struct folder_stack {
    struct tree_at *at;
    struct folder_level *level;
    size_t count, room;
    char path[MANIFEST_PATH_MOST + 1]; /* of the last folder; the others are parts of it */
};

/* Adds an existing folder, whose entry has the path `path` in the tree `at`, and sets its attributes. Must be below the
 * last one. Returns 0, or -1 with *e. */
int folder_stack_push(struct folder_stack *stack, struct metadata_rules *rules,
                      const struct entry *entry, const char *path, struct error *e);
/* Leaves all folders that do not hold `path` (NULL: all), and gives them what they lack. Returns 0, or -1 with *e. */
int folder_stack_leave(struct folder_stack *stack, const char *path, struct error *e);
void folder_stack_free(struct folder_stack *stack);
