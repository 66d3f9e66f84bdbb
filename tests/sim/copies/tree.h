/* Trees of files in memory: what the disks of simulated nodes hold for copies, and what tests compare.
 *
 * Paths are sorted as in a manifest: as if '/' were the smallest byte, so that what a folder holds follows it. */
#pragma once

#include "tests/sim/events.h"

enum sim_tree_kind {
    SIM_TREE_FOLDER = 1,
    SIM_TREE_FILE,
    SIM_TREE_LINK,
    SIM_TREE_SOCKET, /* cannot be copied */
};

/* Contents of files: never changed, shared by all files and snapshots that have them. */
struct tree_content {
    uint32_t users;
    uint64_t size, hash;
    uint8_t bytes[];
};

struct tree_item {
    char *path;
    enum sim_tree_kind kind;
    uint64_t modified;
    struct tree_content *content; /* of a file, otherwise NULL */
    char *link;                   /* of a symbolic link, otherwise NULL */
};

struct sim_tree {
    struct tree_item *item;
    size_t count;
};

uint64_t tree_hash(const uint8_t *bytes, size_t length);
/* Contents that depend on the seed, or that are given (copied). The caller releases them. */
struct tree_content *tree_content_draw(uint64_t seed, uint64_t size);
struct tree_content *tree_content_new(const uint8_t *bytes, uint64_t size);
struct tree_content *tree_content_use(struct tree_content *content); /* NULL: NULL */
void tree_content_release(struct tree_content *content);
/* The bytes that all contents take now. */
uint64_t tree_contents_bytes(void);

int tree_compare_paths(const char *a, const char *b);
/* Whether a path is `root` or lies below it. */
bool tree_is_below(const char *path, const char *root);
/* "a/b", or only one of them if the other is ""; malloc'ed. */
char *tree_join(const char *folder, const char *name);

void sim_tree_free(struct sim_tree *tree);
void sim_tree_copy(struct sim_tree *to, const struct sim_tree *from);
/* The part below `root`, with paths relative to it; that of `root` itself is "". */
void sim_tree_below(struct sim_tree *to, const struct sim_tree *from, const char *root);
/* Puts a copy of the item at `path`; what is there, with everything below it, is replaced, unless both are folders. */
void sim_tree_put(struct sim_tree *tree, const char *path, const struct tree_item *item);
void sim_tree_put_folder(struct sim_tree *tree, const char *path, uint64_t modified);
void sim_tree_put_file(struct sim_tree *tree, const char *path, uint64_t modified,
                       struct tree_content *content);
const struct tree_item *sim_tree_find(const struct sim_tree *tree, const char *path);
/* Removes a path with everything below it. */
void sim_tree_remove(struct sim_tree *tree, const char *path);

/* Whether two items are equal, including their times. */
bool tree_item_equal(const struct tree_item *a, const struct tree_item *b);
/* The path of the first difference between two trees, valid as long as they are; NULL: they are equal. */
const char *sim_tree_differs(const struct sim_tree *a, const struct sim_tree *b);

/* Whether these patterns of a request leave a path out. Only patterns without '/' and wildcards are understood: they
 * match a name. */
bool tree_left_out(const char *const *pattern, uint32_t patterns, const char *path);

/* What a target becomes: `source`, as a manifest has it, put over `target`. */
struct tree_overlay {
    const char *const *pattern;
    uint32_t patterns;
    bool into, delete;
};
void sim_tree_overlay(struct sim_tree *target, const struct sim_tree *source,
                      const struct tree_overlay *how);

/* Adds a random tree: up to `files` files of up to `most` bytes, folders, links, and rarely a socket. */
void sim_tree_draw(struct sim_tree *tree, const char *root, uint32_t files, uint64_t most,
                   struct chance *c);
/* Changes some of a tree below a root: files that are larger, shorter, changed in the middle, new or removed. */
void sim_tree_change(struct sim_tree *tree, const char *root, uint32_t changes, struct chance *c);
