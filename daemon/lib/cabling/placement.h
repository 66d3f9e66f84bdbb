/* Places hosts at the nodes of a wanted network, so that few of its links are missing and few cables are left over.
 * A link that is missing, or a cable that is left over, is a mismatch.
 *
 * Small networks are searched completely. In larger ones a host is placed at a node, its neighbours around it, and
 * from there each next host where most of its cables lead: wrong cables have fewer votes than right ones. Many first
 * hosts are tried, so that some of them lie where no cable is wrong; a placement with too many mismatches is given up
 * early. The order of all attempts, and their number, is determined by the networks. */
#pragma once

#include "daemon/lib/cabling/network.h"

struct placement {
    const struct network *wanted, *seen; /* with the same number of nodes */
    const uint32_t
        *fixed; /* by node: the host that has this place, or CABLING_NONE; NULL: none has */
    bool alike; /* all nodes of the wanted network that have links are alike, as in a torus */
    /* If all nodes are alike: pairs of neighbours of node 0 that a symmetry of the network exchanges. The host at the
     * first one is the smaller one, so that no placement is tried twice. */
    const uint32_t (*exchangeable)[2];
    uint32_t exchangeables;
    bool detours; /* take a detour at each step of each try */
    uint32_t first_try,
        tries;      /* which first hosts are tried; a complete search is made with the first try */
    uint32_t limit; /* placements with more mismatches are not reported */
    uint64_t *budget; /* hosts that may still be placed; the search counts it down */
    /* Receives a placement, the host of each node. Returns the new limit, at most the one before; a negative number
     * ends the search. */
    int (*found)(void *context, const uint32_t *host_at, uint32_t mismatches);
    void *context;
};

/* Returns 1 if there are more first hosts to try, 0 if all have been tried, -1 with *e if there is no memory. */
int placement_search(const struct placement *p, struct error *e);
