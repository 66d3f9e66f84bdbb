/* A lower bound on the load of the busiest channel in a complete exchange on a damaged torus: all
 * blocks from one part of the nodes to the rest cross the channels between them. */
#pragma once

#include "daemon/lib/schedule/damage.h"

/* Returns the best bound that the search finds, in blocks. It tries boxes (a range of coordinates
 * in each dimension) as one part, and then moves single nodes to the other part as long as that
 * raises the bound. It also tries the hops of all shortest ways, divided by the number of channels.
 * The result is nearly always the optimum. It is 0 without memory, and with fewer than two nodes.
 * The torus must not be in parts. */
double cuts_bound(const struct damage *d);
