/* What clients are told: states (exchange.h), what exchanges wait for, and which nodes have not confirmed. */
#pragma once

#include "daemon/torusd/exchange/decisions.h"
#include "daemon/torusd/exchange/job.h"

/* Sets *e to a text that names the nodes that have not confirmed, why, and what will happen. */
void unconfirmed_describe(const struct decision *d, const struct exchanges *exchanges,
                          struct error *e);
/* Returns when the remaining nodes are certain not to confirm soon, in nanoseconds of the router's clock.
 * Returns ROUTER_NEVER while a node may confirm at any moment. With `waits`, that includes nodes that are down. */
uint64_t unconfirmed_until(const struct decision *d, const struct exchanges *exchanges, bool waits);

/* Sets `text` to what the job waits for now ("node 4 (1,0)"); "" if the job does not wait for what is down. */
void waiting_describe(const struct job *j, char *text, size_t size);
