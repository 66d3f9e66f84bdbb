/* Checks for obstacles in the way of a target. */
#pragma once

#include "daemon/torusd/files/target/target_record.h"

/* What exists under the final name. */
enum target_occupant { TARGET_NOTHING, TARGET_EMPTY, TARGET_OLD_RESULT };

/* Checks that entries of the deepest existing folder, t->parent, can be removed again. Returns 0, or -1
 * with *e. */
int target_check_above(const struct target *t, struct error *e);

/* Checks that the target is absent, an empty folder, or an old result that may be replaced, and that
 * nothing can keep the new folder from its place. Returns 0 with *what, or -1 with *e. */
int target_check_free(const struct target *t, enum target_occupant *what, struct error *e);

/* Checks, after our own temporary folder has been made and locked, that no other daemon writes to the
 * target, and that it is not kept for an exchange in doubt. If two daemons check at the same time, at least
 * one sees the other. Returns 0, or -1 with *e. */
int target_check_rivals(const struct target *t, struct error *e);
