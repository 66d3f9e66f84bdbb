/* Algorithms by the names that people give. */
#ifndef TORUSD_CLI_NAMED_ALGORITHM_H
#define TORUSD_CLI_NAMED_ALGORITHM_H

#include "daemon/schedule/algorithm.h"

/* The algorithm with this name, or NULL with *e listing the known ones: those for `operation`, or
 * all if that is NULL. */
const struct algorithm *named_algorithm(const char *name, const enum operation *operation,
                                        struct error *e);

/* The name to request of the daemon: that of such an algorithm, "auto", or the best of a family
 * (daemon/schedule/algorithms/family.h). Static; NULL with *e as above. */
const char *requested_algorithm(const char *name, enum operation operation, struct error *e);

/* The option that completes the name of a family: "--algorithm cccube --q 5" is cccube-q5. */
#define Q_OPTION(arguments)                                                                        \
    {                                                                                              \
        "--q", "N|best", offsetof(struct arguments, q),                                            \
            "run cccube in N packets, or in the number of packets that is\n"                       \
            "predicted to be the fastest"                                                          \
    }

/* The name that --algorithm NAME and --q N|best spell together; either is NULL if it is not given.
 * Without --q that is `name`, NULL included, and a name that nobody knows is returned as it is; else
 * it is static. NULL with *e if --q is given and does not go with the name, or is neither a number
 * nor "best". */
const char *spelled_algorithm(const char *name, const char *q, struct error *e);

/* Whether --q goes with this name. */
bool has_q(const char *name);

/* Whether the daemon chooses what to run for this name. */
bool leaves_choice(const char *name);

#endif
