/* One output folder of this node on the disk: prepared beside its final place, under a temporary
 * name that tells the exchange and the node, and renamed once. journal.h has the order of the
 * steps.
 *
 * The temporary folder is addressed by its descriptor, and is locked while its daemon lives, so
 * that leftovers of a crash can be told from another exchange that writes to the same target.
 * Whoever may write to the folder above it can rename it and put something else in its place: what
 * is there under its name is compared with it before it is renamed or removed.
 *
 * A folder that has been prepared under the final name is not filled in place, but replaced by a new
 * one, with the same owner, group, mode and access-control lists: files that get their names one
 * after the other would be seen, and a crash would leave some of them. One rename shows all of them
 * or none. What rename(2) would refuse is therefore refused before anything is sent: a mount point,
 * say, or a folder whose owner a new one cannot have.
 *
 * The calls block: they are made in jobs, one at a time for a target, or at the start. */
#ifndef TORUSD_FILES_TARGET_TARGET_H
#define TORUSD_FILES_TARGET_TARGET_H

#include "daemon/files/target/target_record.h"

/* Nothing on the disk yet. New folders get `output_mode`. */
void target_init(struct target *t, const struct roots *roots, const struct journal *journal,
                 mode_t output_mode, const char *id);

/* Checks that the place (of roots_find_target) is free: nothing there, or an empty folder, or, if
 * `replace`, an old result; and that nothing will be in the way of target_place(). Makes the missing
 * folders above it, the temporary folder, and the entry. Returns 0, or -1 with *e; target_discard() is
 * due in both cases. */
int target_prepare(struct target *t, const struct place *place, uint32_t rank, bool replace,
                   struct error *e);

/* Creates a file in the temporary folder. Returns its descriptor, which the caller closes, or -1
 * with *e. */
int target_create(const struct target *t, uint32_t name, struct error *e);

/* Opens such a file again, for writing; likewise. */
int target_reopen_file(const struct target *t, uint32_t name, struct error *e);

/* Removes it; so does target_discard(). Returns 0, or -1 with *e. */
int target_remove_file(const struct target *t, uint32_t name, struct error *e);

/* The exchange has begun anew: the temporary folder, finished or not, with all that is in it, and the entry are those
 * of `id` from now on, which is not finished. Returns 0, or -1 with *e. */
int target_rename(struct target *t, const char *id, uint32_t rank, struct error *e);

/* All files are there and synced: makes the folder last, and notes it as finished. Returns 0, or -1
 * with *e. */
int target_seal(struct target *t, struct error *e);

/* Puts a finished output under its final name, durably, and forgets the entry. Replaces an empty
 * folder there, or an old result if that was asked for, and nothing else. Returns 0; also where the
 * temporary folder is gone: it was in place already; or with t->left_over. Else -1 with *e: it stays
 * under its temporary name, and may be tried again. */
int target_place(struct target *t, struct error *e);

/* Removes the temporary folder with the files that are named by ranks, the folders that were made
 * for it as far as they are empty, and the entry. Returns 0, or -1 with *e: the entry remains, by which
 * it can be tried again (target_reopen()). */
int target_discard(struct target *t, struct error *e);

/* Closes the descriptors; the disk stays as it is. */
void target_close(struct target *t);

/* What the journal knows of an output from before. Returns 0 with an open target, -1 with *e, or -1
 * with e->code == ERROR_NONE if the journal has no such entry. target_close() is due in all cases.
 */
int target_reopen(struct target *t, struct error *e);

#endif
