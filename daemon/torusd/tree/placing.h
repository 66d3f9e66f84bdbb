/* Puts a complete copy in place: makes folders, renames files over older ones, makes links, sets what differs, removes what
 * the copy does not have. Everything can be repeated: what is in place already is left alone, so that a crash between any
 * two steps does no harm.
 *
 * A new folder is built in the staging with everything in it, and appears under its name in one step. So if the target
 * does not exist, the whole copy does. */
#pragma once

#include "daemon/torusd/tree/complete.h"
#include "daemon/torusd/tree/entry_state.h"
#include "daemon/torusd/tree/folder_stack.h"
#include "daemon/torusd/tree/patterns.h"

struct placing {
    /* set by the caller */
    const struct staging *staging;
    const struct manifest *manifest;
    const struct complete *rules;
    const struct patterns *patterns;
    struct metadata_rules *metadata;
    const uint8_t *state; /* entry_state.h; NULL: not known, after a restart */
    /* results */
    uint64_t removed;
    uint64_t
        changed_since; /* files that are neither here nor in place: somebody has changed them meanwhile */
    char first_changed[256];
    /* the rest belongs to placing.c */
    struct tree_at target, target_links, built, built_links;
    struct folder_stack stack; /* of the new folder */
    bool building;
    char build[MANIFEST_PATH_MOST + 1]; /* path of the new folder */
    size_t build_length;
    struct metadata_rules uncounted;
};

/* Puts everything in place. Returns 0, or -1 with *e. */
int placing_run(struct placing *p, struct error *e);

/* For copies that place each file as soon as it is there. Makes the folders of the manifest: returns 0, or -1 with *e. */
int placing_make_folders(struct placing *p, struct error *e);
/* Puts one file in place, whose folder is there. One call at a time. */
int placing_one(struct placing *p, const struct entry *entry, struct error *e);
void placing_init(struct placing *p);
void placing_free(struct placing *p);
