/* Puts a complete copy in place: makes folders, renames files over older ones, makes links, sets what differs, removes what
 * the copy does not have. Everything can be repeated: what is in place already is left alone, so that a crash between any
 * two steps does no harm.
 *
 * A new folder is built in the staging with everything in it, and appears under its name in one step. So if the target
 * does not exist, the whole copy does. */
#pragma once

#include <stdint.h>

#include "daemon/torusd/tree/metadata.h"
#include "daemon/torusd/tree/patterns.h"
#include "daemon/torusd/tree/staging.h"

/* What comparing has found about an entry of a manifest; a byte for each. */
enum {
    STATE_SAME,     /* nothing to do */
    STATE_METADATA, /* only mode, owner, attributes or times differ */
    STATE_NEW,      /* it is absent, another kind, or has other contents */
    STATE_MASK = 3,
    STATE_ABSENT = 4, /* with STATE_NEW: nothing has its name */
    STATE_OLD = 8     /* with STATE_NEW: an older version is there, of which pieces may be used */
};

static inline unsigned state_of(const uint8_t *state, uint64_t index)
{
    return state[index] & STATE_MASK;
}

/* Folders on the way to the entry that a walk through a manifest has reached. A folder gets its owner, mode and time when
 * the walk has left it: before, its mode could keep this process out, and its time would change. */
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

struct install {
    /* set by the caller */
    const struct staging *staging;
    const struct manifest *manifest;
    const struct complete *rules;
    const struct patterns *patterns;
    struct metadata_rules *metadata;
    const uint8_t *state; /* STATE_..., for each entry; NULL: not known, after a restart */
    /* results */
    uint64_t removed;
    uint64_t
        changed_since; /* files that are neither here nor in place: somebody has changed them meanwhile */
    char first_changed[256];
    /* the rest belongs to install.c */
    struct tree_at target, target_links, built, built_links;
    struct folder_stack stack; /* of the new folder */
    bool building;
    char build[MANIFEST_PATH_MOST + 1]; /* path of the new folder */
    size_t build_length;
    struct metadata_rules uncounted;
};

/* Puts everything in place, durably. Returns 0, or -1 with *e. */
int install_run(struct install *p, struct error *e);

/* For copies that place each file as soon as it is there. Makes the folders of the manifest: returns 0, or -1 with *e. */
int install_make_folders(struct install *p, struct error *e);
/* Puts one file in place. Its folder must be there. One call at a time. */
int install_one(struct install *p, const struct entry *entry, struct error *e);
void install_init(struct install *p);
void install_free(struct install *p);

/* Puts a staging in place, durably, if its marker says that the copy is complete. Returns 1; 0: it is not; or -1 with *e;
 * *changed_since counts files that somebody changed meanwhile, and *first names one. */
int install_resume(struct staging *s, uint64_t *changed_since, char first[256], struct error *e);
