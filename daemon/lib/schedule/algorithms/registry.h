/* The registry: all algorithms that have a name, except most members of families. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* The algorithms in a fixed order, the first at index 0; NULL for any other index. They are never
 * freed. algorithm_find() returns the algorithm with this name, or NULL; it also knows members of
 * families that are not in the registry, such as cccube-q5, and makes them (family.h). */
const struct algorithm *algorithm_at(size_t index);
size_t algorithm_count(void);
const struct algorithm *algorithm_find(const char *name);
/* Whether the algorithm is in the registry. */
bool algorithm_is_listed(const struct algorithm *a);

/* The names of all algorithms, "ar, at2, direct", for messages. Never freed. */
const char *algorithm_names(void);

/* Writes the names of the algorithms that can carry out an operation, in the same form, cut off
 * after ALGORITHM_NAMES_SIZE - 1 characters. `names` has room for ALGORITHM_NAMES_SIZE. Returns
 * `names`. */
#define ALGORITHM_NAMES_SIZE 512
const char *algorithm_names_for(enum operation operation, char *names);
