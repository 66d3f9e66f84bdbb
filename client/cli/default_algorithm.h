/* Which algorithm runs when none was asked for. */
#ifndef TORUSD_CLI_DEFAULT_ALGORITHM_H
#define TORUSD_CLI_DEFAULT_ALGORITHM_H

#include "daemon/schedule/algorithm.h"

/* The algorithm for an operation on this torus, or NULL with *e set if none takes it. */
const struct algorithm *default_algorithm(const struct torus *t, enum operation operation,
                                          struct error *e);

/* The algorithm of this name, or NULL with *e listing the known ones: those for `operation`, unless
 * that is NULL. */
const struct algorithm *named_algorithm(const char *name, const enum operation *operation,
                                        struct error *e);

#endif
