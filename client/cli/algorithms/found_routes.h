/* `stream` on networks other than tori: its routes are found for each network. */
#ifndef TORUSD_CLI_FOUND_ROUTES_H
#define TORUSD_CLI_FOUND_ROUTES_H

#include "daemon/schedule/detour/detour.h"

/* Returns the algorithm with the routes found on *t if `a` is `stream` and *t is no torus, otherwise `a`. The caller gives
 * *found, which is NULL or holds the routes, to detour_free(). Returns NULL with *e if there are no routes. */
const struct algorithm *found_routes(const struct algorithm *a, const struct torus *t,
                                     struct detour **found, struct error *e);

#endif
