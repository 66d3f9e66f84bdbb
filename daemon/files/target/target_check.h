/* What may be in the way of a target. */
#ifndef TORUSD_FILES_TARGET_TARGET_CHECK_H
#define TORUSD_FILES_TARGET_TARGET_CHECK_H

#include "daemon/files/target/target_record.h"

/* What is under the final name. */
enum target_occupant { TARGET_NOTHING, TARGET_EMPTY, TARGET_OLD_RESULT };

/* What is made in the deepest existing folder, t->parent, can be removed again. Returns 0, or -1 with *e. */
int target_check_above(const struct target *t, struct error *e);

/* The target is absent, an empty folder, or an old result that is to be replaced, and nothing can keep the new
 * one from its place. Returns 0 with *what, or -1 with *e. */
int target_check_free(const struct target *t, enum target_occupant *what, struct error *e);

/* After our own temporary folder has been made and locked: does another daemon write to the target, or is it
 * kept for an exchange in doubt? Of two at the same time, one at least sees the other. Returns 0, or -1 with
 * *e. */
int target_check_rivals(const struct target *t, struct error *e);

#endif
