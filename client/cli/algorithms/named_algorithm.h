/* Finds algorithms by the names that users give. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/detour/detour.h"
#include "daemon/lib/schedule/torus.h"

/* Returns the algorithm with this name, or NULL with *e, which lists the known names: those for `operation`, or all
 * if `operation` is NULL. */
const struct algorithm *named_algorithm(const char *name, const enum schedule_operation *operation,
                                        struct error *e);

/* Returns the name to send to the daemon: that of an algorithm for `operation`, "auto", or the "best" name of a
 * family (daemon/lib/schedule/algorithms/family.h). Static. NULL with *e as above. */
const char *requested_algorithm(const char *name, enum schedule_operation operation,
                                struct error *e);

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

/* Whether the routes of an algorithm of this name are found on *t. */
bool found_is_name(const char *name, const struct torus *t);

/* Returns the algorithm of that name (NULL: `stream`) with routes that have been found, or NULL with *e. */
const struct algorithm *found_named(struct detour *found, const char *name, struct error *e);

/* Finds the routes of `stream` or `disjoint` on a network that is not a torus. Returns the algorithm with these routes;
 * any other algorithm, and any algorithm on a torus, is returned as it is, with *found NULL. The caller passes *found,
 * which holds the routes, to detour_free(). Returns NULL with *e, and *found NULL, if there are no routes. */
const struct algorithm *found_routes(const struct algorithm *a, const struct torus *t,
                                     struct detour **found, struct error *e);

/* Parses the dimensions in a status, whose graphs become known. Returns 0, or -1 with *e
 * (ERROR_PROTOCOL). */
int daemon_torus_of_status(const struct torus_status *status, struct torus *t, struct error *e);

/* Parses dimensions that the daemon has sent. If they have a graph whose edges are not known, asks the
 * daemon for them, which takes a request. Returns an exit code; on failure what went wrong has been
 * printed. The client must be connected. */
int daemon_torus_parse(const struct cli *cli, const char *dims, struct torus *t);
