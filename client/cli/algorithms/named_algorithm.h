/* Finds algorithms by the names that users give. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Returns the algorithm with this name, or NULL with *e, which lists the known names: those for `operation`, or all
 * if `operation` is NULL. */
const struct algorithm *named_algorithm(const char *name, const enum operation *operation,
                                        struct error *e);

/* Returns the name to send to the daemon: that of an algorithm for `operation`, "auto", or the "best" name of a
 * family (daemon/lib/schedule/algorithms/family.h). Static. NULL with *e as above. */
const char *requested_algorithm(const char *name, enum operation operation, struct error *e);

/* The option that completes the name of a family: "--algorithm cccube --q 5" means cccube-q5. */
#define Q_OPTION(arguments)                                                                        \
    {                                                                                              \
        "--q", "N|best", offsetof(struct arguments, q),                                            \
            "run cccube in N packets, or in the number of packets that is\n"                       \
            "predicted to be the fastest"                                                          \
    }

/* Returns the name that --algorithm NAME and --q N|best form together; each of them is NULL if it was not given.
 * Without --q, and for an unknown name, returns `name`. Otherwise the result is static, or NULL with *e if --q does
 * not go with the name, or is neither a number nor "best". */
const char *spelled_algorithm(const char *name, const char *q, struct error *e);

/* Returns whether --q can be used with this name. */
bool has_q(const char *name);

/* Returns whether the daemon chooses the algorithm for this name. */
bool leaves_choice(const char *name);
