/* Routes that avoid what is out of order on a torus, as an algorithm: `stream` for a damaged torus.
 * balance.h finds the routes of exchanges, spread.h the trees of allgathers. Blocks from and to
 * nodes that are out of order have no route: algorithm_route() returns 0 legs for them. */
#ifndef TORUSD_SCHEDULE_DETOUR_DETOUR_H
#define TORUSD_SCHEDULE_DETOUR_DETOUR_H

#include "daemon/schedule/algorithm.h"
#include "daemon/schedule/damage.h"

#define DETOUR_NAME "detour"
/* Their names where nothing is out of order, for exchanges and for allgathers. */
#define FOUND_NAME "stream"
#define FOUND_GATHER_NAME "spread"

struct detour;

/* Finds routes for the damage, which is copied. Takes 10 ms of processor time on a 4x4, up to a
 * second on a 16x16. Returns 0 with *out, which the caller gives to detour_free(); or -1 with *e:
 * the torus is in parts (ERROR_LINK) or too large (ERROR_REFUSED), no memory. */
int detour_new(struct detour **out, const struct damage *damage, struct error *e);
/* Adds a user, who calls detour_free() as well; the last call frees the routes. Not thread-safe. */
void detour_keep(const struct detour *d);
void detour_free(const struct detour *d); /* ends one use; NULL does nothing */

/* The algorithms for exchanges and for allgathers, and the damage that they avoid; valid as long as
 * *d. */
const struct algorithm *detour_algorithm(const struct detour *d);
const struct algorithm *detour_gather(const struct detour *d);
const struct damage *detour_damage(const struct detour *d);

/* Segments on the busiest channel in an exchange. */
uint32_t detour_busiest(const struct detour *d);
/* detour_find_bound() computes a lower bound on the load of the busiest channel (cuts.h), which
 * takes some 100 ms on a 16x16. detour_bound() returns it in blocks, or 0 if it has not been
 * computed. */
void detour_find_bound(struct detour *d);
double detour_bound(const struct detour *d);

#endif
