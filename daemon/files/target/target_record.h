/* What is known of a target (target.h). */
#ifndef TORUSD_FILES_TARGET_TARGET_RECORD_H
#define TORUSD_FILES_TARGET_TARGET_RECORD_H

#include "daemon/files/places/roots.h"
#include "daemon/files/state/journal.h"
#include "daemon/files/target/attributes.h"

struct target {
    const struct roots *roots;
    const struct journal *journal;
    char id[128];
    struct journal_entry entry;
    struct place above; /* the folder above it */
    int parent;         /* its descriptor; -1: it is not there (yet) */
    int folder;         /* of the temporary folder, likewise */
    bool noted;         /* in the journal */
    mode_t output_mode; /* where no folder has been prepared */
    struct attributes attributes;
    bool has_attributes; /* those are known */
    bool left_over; /* in place, but the old result is not removed: target_discard() does that */
};

/* The file system of a target. */
static inline const struct file_system *target_files(const struct target *t)
{
    return t->roots->files;
}

/* Closes a descriptor, unless it is -1, which it is afterwards. */
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

#endif
