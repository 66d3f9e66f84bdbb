/* The parts of a target that its files share: target.c prepares and removes it, target_check.c looks
 * for what is in its way, target_place.c puts it in its place. */
#ifndef TORUSD_FILES_TARGET_TARGET_PARTS_H
#define TORUSD_FILES_TARGET_TARGET_PARTS_H

#include "daemon/files/target/target.h"

static inline const struct file_system *files_of(const struct target *t)
{
    return t->roots->files;
}

static inline void close_one(const struct target *t, int *file)
{
    if (*file >= 0)
        files_of(t)->close(files_of(t)->context, *file);
    *file = -1;
}

static inline int sync_one(const struct target *t, int file)
{
    return files_of(t)->sync(files_of(t)->context, file);
}

/* What is under the final name. */
enum target_occupant { TARGET_NOTHING, TARGET_EMPTY, TARGET_OLD_RESULT };

/* --- target_check.c --- */

/* The final name with its path. Returns `name`. */
const char *target_full_name(const struct target *t, char name[2 * PATH_MAX]);

/* What is made in the deepest existing folder, t->parent, can be removed again. Returns 0, or -1 with *e. */
int target_check_above(const struct target *t, struct error *e);

/* The target is absent, an empty folder, or an old result that is to be replaced, and nothing can keep the new
 * one from its place. Returns 0 with *what, or -1 with *e. */
int target_check_free(const struct target *t, enum target_occupant *what, struct error *e);

/* After our own temporary folder has been made and locked: does another daemon write to the target, or is it
 * kept for an exchange in doubt? Of two at the same time, one at least sees the other. Returns 0, or -1 with
 * *e. */
int target_check_rivals(const struct target *t, struct error *e);

/* A name and what is added to it have `length` bytes together, where `size` have room. Returns -1 with *e. */
int target_name_too_long(const char *name, size_t length, size_t size, struct error *e);

/* --- target.c --- */

/* Returns 0 if what has the temporary name is the temporary folder, -ESTALE if it is not, or another -errno. */
int target_check_temporary(const struct target *t);

/* Removes the open folder that has the temporary name, with its files. Returns 0 or -errno. */
int target_remove_temporary(const struct target *t);

/* Removes the journal's entry, which goes last. */
void target_forget(struct target *t);

#endif
