/* The folders above a target: makes the missing ones, and removes them again if the output is discarded. */
#pragma once

#include "daemon/torusd/files/target/target_record.h"

/* Opens a folder of the target's root. Returns its descriptor or -errno. */
int target_open_above(const struct target *t, const char *path);

/* Opens the deepest existing folder above the target, and sets *missing to the number of missing ones below
 * it. Returns its descriptor or -errno. */
int target_open_existing(const struct target *t, unsigned *missing);

/* Makes the missing folders, and syncs the folder above each; t->parent moves down to the last one. Returns
 * 0 or -errno. */
int target_make_missing(struct target *t);

/* Removes the folders that were made for the target, or for one that is gone already, if nobody else uses them and they
 * are empty. t->parent moves up to the deepest
 * one that remains. */
void target_remove_made(struct target *t);
