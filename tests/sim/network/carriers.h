/* Tells routers which cables have no carrier. */
#pragma once

#include "tests/sim/network/wire.h"

/* Tells a node which carriers have changed. */
void carriers_tell(struct node *node);

/* Lets the nodes at both ends of a wire check their carriers. */
void carriers_look(struct sim *sim, struct wire *w);
