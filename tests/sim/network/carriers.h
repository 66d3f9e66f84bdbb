/* Routers are told which cables have no carrier. */
#ifndef TORUSD_TESTS_SIM_NETWORK_CARRIERS_H
#define TORUSD_TESTS_SIM_NETWORK_CARRIERS_H

#include "tests/sim/network/wire.h"

/* Tells a node what has changed. */
void carriers_tell(struct node *node);

/* The nodes at both ends of a wire look. */
void carriers_look(struct sim *sim, struct wire *w);

#endif
