/* Routes that avoid what is out of order on a torus, as an algorithm: `stream` for a damaged torus. Channels of
 * different rates carry what their rates allow.
 * exchange_routes.c finds the routes of exchanges, trees.c the trees of allgathers. Blocks from and to
 * nodes that are down have no route: algorithm_route() returns 0 legs for them. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/predict.h"

#define DETOUR_NAME "detour"
/* Their names where nothing is down, for exchanges and for allgathers. */
#define FOUND_NAME "stream"
#define FOUND_GATHER_NAME "spread"
/* The name of the trees that share no channel: that of algorithms/allgather.c, which has such trees for
 * whole tori. */
#define FOUND_DISJOINT_NAME "disjoint"

/* The most nodes of a network on which trees are found that share no channel. */
#define DETOUR_DISJOINT_MOST 64u

struct detour;

/* Finds routes for the damage, which is copied. Takes 10 ms of processor time on a 4x4, up to a
 * second on a 16x16. Returns 0 with *out, which the caller gives to detour_free(); or -1 with *e:
 * the torus is in parts (ERROR_LINK) or too large (ERROR_REFUSED), no memory. */
int detour_new(struct detour **out, const struct damage *damage, struct error *e);
/* The same where nothing is down, with the bound. */
int detour_new_whole(struct detour **out, const struct torus *t, struct error *e);
/* Adds a user, who calls detour_free() as well; the last call frees the routes. Not thread-safe. */
void detour_keep(const struct detour *d);
void detour_free(const struct detour *d); /* ends one use; NULL does nothing */

/* The algorithms for exchanges and for allgathers, and the damage that they avoid; valid as long as
 * *d. */
const struct algorithm *detour_algorithm(const struct detour *d);
const struct algorithm *detour_gather(const struct detour *d);
/* For allgathers and broadcasts: routes along as many trees as can be found that share no channel. If there is only one
 * such tree, the same as detour_gather(); NULL on more than DETOUR_DISJOINT_MOST nodes. */
const struct algorithm *detour_disjoint(const struct detour *d);
/* For reductions of long vectors on the trees of all nodes: the one of the two whose busiest link carries less. */
const struct algorithm *detour_reductions(const struct detour *d);
const struct damage *detour_damage(const struct detour *d);

/* Load of the busiest channel in an exchange: its segments, divided by its rate. */
double detour_busiest(const struct detour *d);
/* detour_find_bound() computes a lower bound on the load of the busiest channel (cuts.c, exchange_routes.c), which
 * takes some 100 ms on a 16x16. detour_bound() returns it in blocks, or 0 if it has not been
 * computed. */
void detour_find_bound(struct detour *d);
/* Counts the trees of allgathers, for detour_gather_for(); takes some 50 ms on 64 nodes. Returns 0,
 * or -1 with *e (no memory). */
int detour_count_trees(struct detour *d, struct error *e);
/* The algorithm that is predicted to be faster for an allgather of blocks of this size or, with
 * `one`, a broadcast, in steps or streaming: detour_gather() or detour_disjoint(). The former if
 * the trees have not been counted. */
const struct algorithm *detour_gather_for(const struct detour *d, bool one, bool streaming,
                                          const struct predict_costs *costs, uint64_t block_bytes);
double detour_bound(const struct detour *d);
/* The same bound if all links that are up had the full rate; 0 if it has not been computed. */
double detour_equal_bound(const struct detour *d);
/* A lower bound on the time of an exchange, as detour_bound(), of which no routes are found. */
double detour_exchange_bound(const struct damage *d);
/* A lower bound on the time of an allgather, in blocks on a channel of the full rate, from cuts; 0 without memory. */
double detour_gather_bound(const struct damage *d);
/* The least cut that everything crosses which a node sends to all others, in channels of the full rate. On more than
 * DETOUR_DISJOINT_MOST nodes only cuts around single nodes count. 0 without memory, or if no other node is up. */
double detour_least_cut(const struct damage *d, uint32_t root);
/* A lower bound on the time of a broadcast from the root that needs the most, in blocks: 1 over its least cut; 0 if there
 * are no trees. */
double detour_broadcast_bound(const struct detour *d);
