/* IP routes over links of different rates: by which ports packets get nearer to a node, and what part of them each of
 * these ports takes. Pure.
 *
 * A link costs ROUTE_COST divided by its rate in that direction, as a part of the full rate, and at least ROUTE_COST.
 * Packets may leave a node by every port that leads to a node from which the cheapest path to their destination costs
 * less. So no packet goes in circles, and a detour of three fast links counts if the direct link has less than half of
 * their rate. If all links have the same rate, these are all shortest paths.
 *
 * Weights say how the packets to a destination are divided among these ports. They come from traffic between all pairs of
 * nodes, in small parts: each part takes the path whose links are the least busy so far, relative to their rates. Loads of
 * links then come close to the optimum of the linear program (tests/integration/test_ip_weights.py). Nodes may have
 * different weights: no weights can make a loop. */
#pragma once

#include "daemon/lib/schedule/torus.h"

#define ROUTE_COST 4u
#define ROUTE_WEIGHT_SUM 64u /* weights of a route are parts of this, without common factors */
#define ROUTE_FAR UINT32_MAX
#define ROUTE_ALL_NODES UINT32_MAX
#define ROUTE_EFFORT UINT64_C(5000000) /* some hundredths of a second */

struct route_links {
    const struct torus *torus;
    const uint32_t *up;   /* by node: bits of the ports whose links are up */
    const bool *forwards; /* by node: packets of others may pass through it; NULL: through all */
    const uint16_t *rate; /* by node * ports + port: 1 to DAMAGE_FULL_RATE */
};

/* The paths to one node. */
struct route_paths {
    uint32_t *cost;   /* by node: of the cheapest path there; ROUTE_FAR: none */
    uint32_t *hops;   /* by node: of the longest path that the ports below permit */
    uint32_t *nearer; /* by node: bits of the ports that packets may take */
    uint32_t *order;  /* nodes that have a path, the cheapest first */
    uint32_t count;   /* of these */
    uint64_t *heap;   /* room to work */
};

/* Makes *p ready for a network. Returns 0, or -1 if memory is short. The caller frees *p with route_paths_free() in both
 * cases. */
int route_paths_init(struct route_paths *p, const struct torus *torus);
void route_paths_free(struct route_paths *p);

/* Finds the paths to a node. */
void route_paths_find(struct route_paths *p, const struct route_links *l, uint32_t to);

/* Stores the weights of node `from`, by destination * ports + port, or those of all nodes (ROUTE_ALL_NODES) by (node *
 * nodes + destination) * ports + port: 0 to ROUTE_WEIGHT_SUM; 0 for ports that packets do not take. `effort`: how many
 * times a link may be looked at; if that is too little for the network, weights only follow the rates of the links at the
 * node itself. Returns 0, or -1 if memory is short. */
int route_weights_find(const struct route_links *l, uint32_t from, uint64_t effort,
                       uint8_t *weight);
