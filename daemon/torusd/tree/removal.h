/* Removes files, and folders with everything in them, bottom up. Folders of this process may have any mode. Mount
 * points, stagings and what patterns leave out are kept, and so are the folders that hold them. */
#pragma once

#include <stdatomic.h>

#include "daemon/torusd/copy/tree_store.h"
#include "daemon/torusd/tree/at.h"
#include "daemon/torusd/tree/patterns.h"

/* Paths, each with a 0 byte behind it. */
struct removal_paths {
    uint8_t *bytes; /* of TREE_GOING_MOST bytes; NULL: none yet */
    size_t length;
};

struct removal {
    struct tree_at *at;
    const struct patterns *patterns; /* NULL: none */
    bool everything;                 /* of a staging: no name is left alone */
    bool look_only;                  /* only count */
    const atomic_bool *stop;         /* NULL: it cannot be stopped */
    struct removal_paths
        *paths;       /* with look_only: what would be removed; NULL: it is only counted */
    uint64_t removed; /* files and folders that were, or would be, removed */
    bool stays;       /* something stays; the caller may reset it */
    char first[MANIFEST_PATH_MOST + 1]; /* the first path that was removed; "": none yet */
};

/* Removes what has this path, if anything does. Returns 0, or -1 with *e. */
int removal_of(struct removal *r, const char *path, struct error *e);
/* Removes what is in the folder with this path, but not the folder. Returns 0, or -1 with *e. */
int removal_below(struct removal *r, const char *path, struct error *e);

/* Entries of the target that are not in the manifest: they are counted or removed. */

/* Removes everything in the folders of the manifest that it does not name, by the rules of *r; counts in *r. Returns 0, or
 * -1 with *e. */
int extras_remove(const struct manifest *m, struct removal *r, struct error *e);
