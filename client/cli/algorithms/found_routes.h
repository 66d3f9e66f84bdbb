/* `stream` and `disjoint` on networks other than tori: their routes are found for each network. */
#pragma once

#include "daemon/lib/schedule/detour/detour.h"

/* Whether the routes of an algorithm of this name are found on *t. */
bool found_is_name(const char *name, const struct torus *t);

/* Returns the algorithm of that name (NULL: `stream`) with routes that have been found, or NULL with *e. */
const struct algorithm *found_named(struct detour *found, const char *name, struct error *e);

/* Finds the routes of `stream` or `disjoint` on a network that is not a torus. Returns the algorithm with these routes;
 * any other algorithm, and any algorithm on a torus, is returned as it is, with *found NULL. The caller passes *found,
 * which holds the routes, to detour_free(). Returns NULL with *e, and *found NULL, if there are no routes. */
const struct algorithm *found_routes(const struct algorithm *a, const struct torus *t,
                                     struct detour **found, struct error *e);
