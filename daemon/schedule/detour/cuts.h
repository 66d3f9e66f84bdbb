/* A lower bound on what the busiest channel of a damaged torus must carry in a complete exchange: all
 * blocks from one part of the nodes to the rest have to cross the channels between them. */
#ifndef TORUSD_SCHEDULE_DETOUR_CUTS_H
#define TORUSD_SCHEDULE_DETOUR_CUTS_H

#include "daemon/schedule/damage.h"

/* The best bound that was found, in blocks. The search tries boxes (a range of coordinates in
 * each dimension) as the one part, and moves single nodes to the other part as long as that
 * raises the bound. It also tries the hops of all shortest ways, divided among all channels. The
 * result is nearly always the optimum. It is 0 if there is no memory, or with fewer than two
 * nodes. The damage must leave the torus connected. */
double cuts_bound(const struct damage *d);

#endif
