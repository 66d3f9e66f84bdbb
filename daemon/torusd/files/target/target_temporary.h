/* The temporary folder of a target: whether it is still there, and its removal. */
#pragma once

#include "daemon/torusd/files/target/target_record.h"

/* Returns 0 if the entry with the temporary name is the open temporary folder, -ESTALE if it is another
 * one, or another -errno. */
int target_check_temporary(const struct target *t);

/* Removes the open folder that has the temporary name, with its files. Returns 0 or -errno. */
int target_remove_temporary(const struct target *t);

/* Removes the journal's entry. To be called last. */
void target_forget(struct target *t);
