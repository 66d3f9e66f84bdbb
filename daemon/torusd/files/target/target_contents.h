/* Whether the files in the temporary folder of a target are those that torusd has written. */
#pragma once

#include "daemon/torusd/files/target/target_record.h"

/* Compares the sum of the stamps. Returns 0, or -1 with *e, which says what to remove. */
int target_check_contents(const struct target *t, uint64_t contents, struct error *e);
