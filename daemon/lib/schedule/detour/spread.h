/* Trees over which each node's block spreads on a damaged torus: the routes of an allgather. A tree
 * reaches every node by the fewest hops; of several such ways it takes the channel that the trees
 * before it have used least. All numbers are integers, so that every node finds the same trees for
 * the same damage. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/damage.h"

struct spread {
    uint32_t nodes;
    uint32_t longest; /* hops of the longest route */
    uint8_t *towards; /* by source * nodes + node: the node's port towards the source; TREE_NONE
                       * at the source and where there is no way */
};

/* Fills *s. Returns 0 with *s, which the caller frees with spread_free(), or -1 with *e (no memory)
 * and nothing to free. */
int spread_find(struct spread *s, const struct damage *d, struct error *e);
/* Frees what *s holds, and empties *s. */
void spread_free(struct spread *s);

/* Writes the route of a block along a tree, as route() of algorithm.h does; 0 legs if there is none.
 * `towards`, by node: its port towards the source; TREE_NONE as in struct spread. */
uint32_t spread_route_along(const uint8_t *towards, const struct torus *t, uint32_t source,
                            uint32_t destination, struct leg *legs);
/* As spread_route_along(), along the source's tree. */
uint32_t spread_route(const struct spread *s, const struct torus *t, uint32_t source,
                      uint32_t destination, struct leg *legs);
