/* A lower bound on what the busiest channel of a damaged torus must carry in a complete exchange: all
 * blocks from one part of the nodes to the rest have to cross the channels between them. */
#ifndef TORUSD_SCHEDULE_DETOUR_CUTS_H
#define TORUSD_SCHEDULE_DETOUR_CUTS_H

#include "daemon/schedule/damage.h"

/* The best bound that was found, in blocks, of these: the parts are boxes (a range of coordinates in
 * each dimension), and what comes of them by moving single nodes to the other part as long as that
 * helps; and all hops of shortest ways, shared by all channels. It is nearly always the least that is
 * possible. 0 if there is no memory, or fewer than two nodes. The damage must leave the torus
 * connected. */
double cuts_bound(const struct damage *d);

#endif
