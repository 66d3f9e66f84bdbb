/* The folders above a target: the missing ones are made, and removed again if nothing comes of it. */
#ifndef TORUSD_FILES_TARGET_TARGET_ABOVE_H
#define TORUSD_FILES_TARGET_TARGET_ABOVE_H

#include "daemon/files/target/target_record.h"

/* Opens a folder of the target's root. Returns its descriptor or -errno. */
int target_open_above(const struct target *t, const char *path);

/* Opens the deepest folder above the target that exists; *missing is the number of those that do not. Returns its
 * descriptor or -errno. */
int target_open_existing(const struct target *t, unsigned *missing);

/* Makes the missing folders, each synced into the one above it; t->parent moves down. Returns 0 or -errno. */
int target_make_missing(struct target *t);

/* Removes the folders that were made for the target, as far as they are empty. t->parent moves up to the deepest
 * that remains. */
void target_remove_made(struct target *t);

#endif
