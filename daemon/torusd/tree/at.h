/* Folders of a tree, opened one name after the other below a folder that is open, without following symbolic links:
 * whatever happens to the names meanwhile, no path leads out of the tree. The folders on the way to the last one stay
 * open, so that neighbours in a manifest cost one call; deep trees need a bounded number of descriptors all the same. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "daemon/torusd/tree/manifest.h"
#include "proto/error.h"

#define TREE_AT_KEPT 32u /* folders that stay open */

struct tree_at {
    int above;               /* folder that has the tree; borrowed; -1: it does not exist */
    char name[NAME_MAX + 1]; /* of the tree there; ".": it is that folder itself */
    const char *shown;       /* absolute path of the tree, for errors; borrowed */
    unsigned kept;
    int folder[TREE_AT_KEPT]; /* level 0 is the tree's top */
    size_t end[TREE_AT_KEPT]; /* lengths of their paths */
    int deep;                 /* a folder below them; -1: none */
    size_t deep_end;
    char path[MANIFEST_PATH_MOST + 1];
};

void tree_at_init(struct tree_at *t, int above, const char *name, const char *shown);
/* Closes all folders; the tree can be used further. To be called when a folder may have been replaced. */
void tree_at_close(struct tree_at *t);

/* Opens a folder; its path is the first `length` bytes of `path` (0: the top). Returns its descriptor (O_PATH),
 * which is valid until the next call, or -errno; -ENOTDIR if a part of the path is a link or no folder. */
int tree_at_folder(struct tree_at *t, const char *path, size_t length);
/* Opens the folder that holds `path`, and sets *name to its name there, which is valid as long as `path`. Returns the
 * descriptor like tree_at_folder(). */
int tree_at_parent(struct tree_at *t, const char *path, const char **name);

/* Status of a name in a folder; links are not followed. *mount: it is a mount point. Returns 0 or -errno. */
int tree_at_status(int folder, const char *name, struct stat *st, bool *mount);

/* Checks that this process may remove or replace `name` in an open folder (NULL: make names there), or may at least allow
 * itself to do that. `path` is that of the name, for errors. Returns 0, or -errno with *e. */
int tree_at_check_change(const struct tree_at *t, int folder, const char *name, const char *path,
                         struct error *e);

/* Sets the mode of an open folder (which may be O_PATH), whatever has its name meanwhile. Returns 0 or -errno. */
int tree_at_set_mode(int folder, mode_t mode);

/* Fills *e: the path "cannot be `done`" ("opened"), because of `error` (errno). Returns -1. */
int tree_at_failed(const struct tree_at *t, const char *path, const char *done, int error,
                   struct error *e);
/* Fills *e with "PATH `text`". Returns -1. */
int tree_at_refused(const struct tree_at *t, const char *path, const char *text, struct error *e);
/* Writes the absolute path, printable, cut if it is too long. Returns `out`. */
char *tree_at_shown(const struct tree_at *t, const char *path, char *out, size_t size);
