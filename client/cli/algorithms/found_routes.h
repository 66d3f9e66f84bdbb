/* `stream` and `disjoint` on networks other than tori: their routes are found for each network. */
#ifndef TORUSD_CLI_FOUND_ROUTES_H
#define TORUSD_CLI_FOUND_ROUTES_H

#include "daemon/schedule/detour/detour.h"

/* Whether the routes of an algorithm of this name are found on *t. */
bool found_is_name(const char *name, const struct torus *t);

/* Returns the algorithm of that name (NULL: `stream`) with routes that have been found, or NULL with *e. */
const struct algorithm *found_named(struct detour *found, const char *name, struct error *e);

/* Returns the algorithm with the routes found on *t if `a` is `stream` or `disjoint` and *t is no torus, otherwise `a`. The caller gives
 * *found, which is NULL or holds the routes, to detour_free(). Returns NULL with *e if there are no routes. */
const struct algorithm *found_routes(const struct algorithm *a, const struct torus *t,
                                     struct detour **found, struct error *e);

#endif
