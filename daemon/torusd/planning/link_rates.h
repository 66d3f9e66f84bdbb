/* The rates of links that a plan was made with, as clients are told of them. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "daemon/lib/schedule/detour/detour.h"

struct link_rates {
    char rates[1024];  /* damage_format_rates(); "": the plan takes all links for equal */
    uint64_t full_bps; /* rate of the fastest links; 0: not known */
    /* Lower bounds at these rates, and if all links had the full rate: blocks that a channel of the full rate carries one
     * after another. 0: not known. */
    double bound, equal_bound;
};

/* Sets the rates; without any bounds. `d` may be NULL. */
void link_rates_of(struct link_rates *out, const struct damage *d);

/* Adds the bounds, unless all links are equal. Exchanges: those of the found routes for *d, if these are known (NULL: they
 * are not). */
void link_rates_bound_exchange(struct link_rates *out, const struct detour *found);
/* Allgathers. */
void link_rates_bound_gather(struct link_rates *out, const struct damage *d);
/* Broadcasts from a node, and copies of its trees to all other nodes. */
void link_rates_bound_broadcast(struct link_rates *out, const struct damage *d, uint32_t root);
