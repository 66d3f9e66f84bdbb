/* Folders that torusd makes beside a target, and locks while it uses them: `.NAME.torusd-ID-RANK` for the output of an
 * exchange (files/target.h), `.NAME.torus-copy` for what arrives for a copy (tree/staging.h). Each kind makes and locks its
 * own folder, and then looks for one of the other: if two begin at the same time, at least one sees the other. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "daemon/torusd/disk/file_system.h"

#define BESIDE_COPY ".torus-copy"

/* Writes the name of the folder of copies to a target with this name; ".": inside the target. */
void beside_name_copy(const char *target, char out[NAME_MAX + 1]);
/* Writes what the names of all folders of exchanges to a target begin with, cut if it is too long. Returns its length. */
int beside_name_exchanges(const char *target, char out[NAME_MAX + 1]);
/* Whether somebody has locked the folder with this name. */
bool beside_is_used(const struct file_system *files, int above, const char *name);
/* Whether an exchange uses a folder beside this target. Returns 1, 0 or -errno. */
int beside_find_exchange(const struct file_system *files, int above, const char *target);
