/* An output folder of this node on the disk. It is filled beside its final place, under a temporary name that
 * contains the exchange and the node, and then renamed. journal.h has the order of the steps.
 *
 * The temporary folder is addressed by its descriptor, and is locked while its daemon lives. The lock
 * distinguishes leftovers of a crash from the output of another exchange that writes to the same target. Any
 * user who may write to the folder above can rename the temporary folder and put another one in its place. So
 * the folder under the temporary name is compared with the open one before it is renamed or removed.
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
#include "daemon/torusd/disk/made_folders.h"

struct target {
    const struct roots *roots;
    const struct journal *journal;
    struct made_folders *made;
    struct made_use *use; /* of the folders above the target; NULL: as from before a restart */
    char id[128];
    struct journal_entry entry;
    struct location above; /* the folder above the target */
    int parent;            /* descriptor of `above`; -1: it does not exist (yet) */
    int folder;            /* descriptor of the temporary folder; -1: it does not exist */
    bool has_entry;        /* the journal has an entry */
    mode_t output_mode;    /* mode for a new folder */
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

/* Initialises *t, and touches no disk. New folders get the mode `output_mode`; those above the target are noted in
 * `made`. */
void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 struct made_folders *made, mode_t output_mode, const char *id);

/* Checks that the place (from roots_find_target()) is free: absent, an empty folder, or, if `replace`, an
 * old result; and that nothing will keep target_install() from succeeding. Makes the missing folders above
 * it, the temporary folder, and the entry. Returns 0, or -1 with *e; the caller must call target_discard()
 * in both cases, unless the target is placed. */
int target_prepare(struct target *t, const struct location *place, uint32_t rank, bool replace,
                   struct error *e);

/* Creates a file in the temporary folder. Returns its descriptor, which the caller closes, or -1
 * with *e. */
int target_create(const struct target *t, uint32_t name, struct error *e);

/* Opens a file of the temporary folder again, for writing. Returns its descriptor, which the caller closes,
 * or -1 with *e. */
int target_reopen_file(const struct target *t, uint32_t name, struct error *e);

/* Removes a file of the temporary folder; target_discard() does that, too. Returns 0, or -1 with *e. */
int target_remove_file(const struct target *t, uint32_t name, struct error *e);

/* Gives the temporary folder (finished or not) with its contents, and the entry, to the next attempt `id`.
 * The new entry is not finished. Returns 0, or -1 with *e. */
int target_rename(struct target *t, const char *id, uint32_t rank, struct error *e);

/* Finds a file of the temporary folder. Returns 0 with *status, or -errno. */
int target_find_file(const struct target *t, uint32_t name, struct file_status *status);

/* Fills *e: what has this name in the temporary folder is not the file as torusd has left it; the text says what to do.
 * `kind` is what it is now. Returns -1. */
int target_file_differs(const struct target *t, const char *name, enum file_kind kind,
                        struct error *e);

/* What ties a record about a file of the temporary folder to the file (file_stamp.h). */
uint64_t target_stamp_of(uint32_t name, const struct file_status *status);

/* Sets *contents to the sum of the stamps of all files in the temporary folder. Returns 0, or -1 with *e: there is
 * something else in it, or it cannot be read. */
int target_contents(const struct target *t, uint64_t *contents, struct error *e);

/* Makes the temporary folder durable, and records it as finished. All files must be there and synced; `contents` is the
 * sum of their stamps after the last write. Returns 0, or -1 with *e (ERROR_DAMAGED: somebody else has written). */
int target_seal(struct target *t, uint64_t contents, struct error *e);

/* Puts a finished output under its final name, durably, and removes the entry. Replaces an empty folder
 * there, or an old result if that was requested, and nothing else. Returns 0, also if the temporary folder
 * has gone because the output was in place already, and with t->old_result_remains if the old result could not be
 * removed. Otherwise returns -1 with *e: the output keeps its temporary name, and the call may be repeated. */
int target_install(struct target *t, struct error *e);

/* Removes the temporary folder with the files that are named by ranks, the folders that were made for it if
 * they are empty, and the entry. Returns 0, or -1 with *e: the entry remains, and allows another try
 * (target_reopen()). */
int target_discard(struct target *t, struct error *e);

/* Closes the descriptors; the disk stays as it is. */
void target_close(struct target *t);

/* Opens the output of an exchange from before a restart, from its entry in the journal. Returns 0 with an
 * open target, -1 with *e, or -1 with e->code == ERROR_NONE if there is no entry. The caller must call
 * target_close() in all cases.
 */
int target_reopen(struct target *t, struct error *e);

/* --- what target.c needs of target_prepare.c --- */

/* Whether a file of a result can have this name. */
bool old_result_is_name(const char *name);

/* Fills in the temporary name, which contains the exchange and the node. Returns 0, or -1 with *e: it is
 * too long. */
int target_set_temporary(struct target *t, const char *name, uint32_t rank, struct error *e);

/* What exists under the final name. */
enum target_occupant { TARGET_NOTHING, TARGET_EMPTY, TARGET_OLD_RESULT };

/* Checks that the target is absent, an empty folder, or an old result that may be replaced, and that
 * nothing can keep the new folder from its place. Returns 0 with *what, or -1 with *e. */
int target_check_free(const struct target *t, enum target_occupant *what, struct error *e);
