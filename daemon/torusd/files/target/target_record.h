/* The record of a target (target.h). */
#pragma once

#include "daemon/torusd/files/places/made_folders.h"
#include "daemon/torusd/files/state/journal.h"
#include "daemon/torusd/files/target/attributes.h"

struct target {
    const struct roots *roots;
    const struct journal *journal;
    struct made_folders *made;
    struct made_use *use; /* of the folders above the target; NULL: as from before a restart */
    char id[128];
    struct journal_entry entry;
    struct place above; /* the folder above the target */
    int parent;         /* descriptor of `above`; -1: it does not exist (yet) */
    int folder;         /* descriptor of the temporary folder; -1: it does not exist */
    bool has_entry;     /* the journal has an entry */
    mode_t output_mode; /* mode for a new folder */
    struct attributes attributes;
    bool has_attributes; /* `attributes` are valid */
    /* the output is in place, but target_discard() must still remove the old result */
    bool old_result_remains;
};

/* The file system of a target. */
static inline const struct file_system *target_files(const struct target *t)
{
    return t->roots->files;
}

/* Closes a descriptor, unless it is -1, and sets it to -1. */
static inline void target_close_one(const struct target *t, int *file)
{
    if (*file >= 0)
        target_files(t)->close(target_files(t)->context, *file);
    *file = -1;
}

/* Returns 0 or -errno. */
static inline int target_sync_one(const struct target *t, int file)
{
    return target_files(t)->sync(target_files(t)->context, file);
}
