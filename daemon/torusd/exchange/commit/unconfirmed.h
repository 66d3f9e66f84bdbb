/* Describes a decision that some nodes have not confirmed, and says how long the client waits for them. */
#pragma once

#include "daemon/torusd/exchange/commit/decisions.h"

/* Sets *e to a text that names the nodes that have not confirmed, why, and what will happen. */
void unconfirmed_describe(const struct decision *d, const struct exchanges *exchanges,
                          struct error *e);
/* Returns when the remaining nodes are certain not to confirm soon, in nanoseconds of the router's clock.
 * Returns ROUTER_NEVER while a node may confirm at any moment. With `waits`, that includes nodes that are down. */
uint64_t unconfirmed_until(const struct decision *d, const struct exchanges *exchanges, bool waits);
