/* An output folder of this node on the disk. It is filled in a staging beside the target (disk/staging.h), whose name has the
 * exchange and the node, and which is then renamed. journal.h has the order of the steps.
 *
 * An existing folder under the final name is not filled, but replaced by the new one with the same
 * owner, group, mode and access-control lists. If files appeared in it one after the other, readers would see
 * a part of them, and a crash would leave a part of them; one rename shows all files or none. Therefore
 * everything that rename(2) would refuse (for instance a mount point, or a folder whose owner a new one
 * cannot have) is refused before any data is sent.
 *
 * The functions block: they are called in jobs, one at a time for a target, or at the start of the daemon. */
#pragma once

#include "daemon/torusd/disk/attributes.h"
#include "daemon/torusd/disk/journal.h"
#include "daemon/torusd/disk/staging.h"

struct target {
    struct staging staging; /* the first member */
    const struct journal *journal;
    char id[128];
    struct journal_entry entry;
    bool has_entry; /* the journal has an entry */
    struct attributes attributes;
    bool has_attributes; /* `attributes` are valid */
    /* the output is in place, but target_discard() must still remove the old result */
    bool old_result_remains;
};

/* The file system of a target. */
static inline const struct file_system *target_files(const struct target *t)
{
    return t->staging.roots->files;
}

/* The name of the file of a node in an output. */
struct target_name {
    char text[12];
};
struct target_name target_name(uint32_t origin);

/* Initialises *t, and touches no disk. New folders get the mode `output_mode`; those above the target are noted in
 * `made`. */
void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 struct made_folders *made, mode_t output_mode, const char *id);

/* Finds the place of a target with this path, which must be strictly below a data root, and names its staging. Touches no
 * disk. Returns 0, or -1 with *e. */
int target_find(struct target *t, const char *path, uint32_t rank, struct error *e);

/* Checks that the target, which has been found, is free: absent, an empty folder, or, if `replace`, an old result; and that
 * nothing will keep target_install() from succeeding. Makes the missing folders above it, the staging, and the entry.
 * Returns 0, or -1 with *e; the caller must call target_discard() in both cases, unless the target is installed. */
int target_prepare(struct target *t, bool replace, struct error *e);

/* Makes the file of a node in the staging, or opens it again, for writing. Returns its descriptor, which the caller
 * closes, or -1 with *e. */
int target_open(const struct target *t, uint32_t origin, bool make, struct error *e);

/* Removes the file of a node from the staging; target_discard() does that, too. Returns 0, or -1 with *e. */
int target_remove_file(const struct target *t, uint32_t origin, struct error *e);

/* Gives the staging (finished or not) with its contents, and the entry, to the next attempt `id`.
 * The new entry is not finished. Returns 0, or -1 with *e. */
int target_rename(struct target *t, const char *id, uint32_t rank, struct error *e);

/* Fills *e: what has this name in the staging is not the file as torusd has left it; the text says what to do.
 * `kind` is what it is now. Returns -1. */
int target_file_differs(const struct target *t, const char *name, enum file_kind kind,
                        struct error *e);

/* What ties a record about a file of the staging to the file (file_stamp.h). */
uint64_t target_stamp_of(uint32_t origin, const struct file_status *status);

/* Sets *contents to the sum of the stamps of all files in the staging. Returns 0, or -1 with *e: there is
 * something else in it, or it cannot be read. */
int target_contents(const struct target *t, uint64_t *contents, struct error *e);

/* Makes the staging durable, and records it as finished. All files must be there and synced; `contents` is the
 * sum of their stamps after the last write. Returns 0, or -1 with *e (ERROR_DAMAGED: somebody else has written). */
int target_seal(struct target *t, uint64_t contents, struct error *e);

/* Puts a finished output under its final name, durably, and removes the entry. Replaces an empty folder
 * there, or an old result if that was requested, and nothing else. Returns 0, also if the staging
 * has gone because the output was in place already, and with t->old_result_remains if the old result could not be
 * removed. Otherwise returns -1 with *e: the output keeps its temporary name, and the call may be repeated. */
int target_install(struct target *t, struct error *e);

/* Removes the staging with the files that are named by ranks, the folders that were made for it if
 * they are empty, and the entry. Returns 0, or -1 with *e: the entry remains, and allows another try
 * (target_reopen()). */
int target_discard(struct target *t, struct error *e);

/* Opens the output of an exchange from before a restart, from its entry in the journal. Returns 0 with an
 * open target, -1 with *e, or -1 with e->code == ERROR_NONE if there is no entry. The caller must call
 * staging_close() in all cases. */
int target_reopen(struct target *t, struct error *e);
