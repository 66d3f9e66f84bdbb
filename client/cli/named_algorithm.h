/* Algorithms by the names that people give. */
#ifndef TORUSD_CLI_NAMED_ALGORITHM_H
#define TORUSD_CLI_NAMED_ALGORITHM_H

#include "daemon/schedule/algorithm.h"

/* The algorithm with this name, or NULL with *e listing the known ones: those for `operation`, or
 * all if that is NULL. */
const struct algorithm *named_algorithm(const char *name, const enum operation *operation,
                                        struct error *e);

/* The name to request of the daemon: that of such an algorithm, "auto", or the best of a family
 * (daemon/schedule/family.h). Static; NULL with *e as above. */
const char *requested_algorithm(const char *name, enum operation operation, struct error *e);

/* Whether the daemon chooses what to run for this name. */
bool leaves_choice(const char *name);

#endif
