/* The registry: which algorithms there are. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_REGISTRY_H
#define TORUSD_SCHEDULE_ALGORITHMS_REGISTRY_H

#include "daemon/schedule/algorithm.h"

/* The registry: `count` algorithms in a fixed order; and one by its name (NULL if unknown), which may
 * also be one of a family that is not in the registry, such as cccube-q5. */
const struct algorithm *algorithm_at(size_t index);
size_t algorithm_count(void);
const struct algorithm *algorithm_find(const char *name);
/* Whether the algorithm is in the registry. */
bool algorithm_is_listed(const struct algorithm *a);

/* The names of all algorithms, "ar, at2, direct", for messages. */
const char *algorithm_names(void);

/* Writes the names of the algorithms that can carry out an operation, separated likewise. Cut
 * off after ALGORITHM_NAMES_SIZE - 1 characters. Returns `names`. */
#define ALGORITHM_NAMES_SIZE 512
const char *algorithm_names_for(enum operation operation, char *names);

#endif
