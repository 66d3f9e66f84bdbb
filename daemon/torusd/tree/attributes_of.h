/* Extended attributes of one file, in the form that a manifest has. */
#pragma once

#include "daemon/torusd/tree/metadata.h"

/* Whether a file has other attributes than an entry, among those that can be set here. *refused: the entry has some that
 * cannot be. Returns 1, 0 or -errno. */
int attributes_of_differ(const struct metadata_rules *rules, const struct metadata_place *place,
                         const struct entry *entry, bool *refused);
/* Removes those that the entry lacks, and sets the others. *refused: some could not be set. Returns 0 or -errno. */
int attributes_of_set(const struct metadata_rules *rules, const struct metadata_place *place,
                      const struct entry *entry, bool *refused);
