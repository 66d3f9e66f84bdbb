/* A decision that not all nodes have confirmed: who has not, why, and how long the client waits for them. */
#ifndef TORUSD_EXCHANGE_COMMIT_UNCONFIRMED_H
#define TORUSD_EXCHANGE_COMMIT_UNCONFIRMED_H

#include "daemon/exchange/commit/decisions.h"

/* Which nodes have not confirmed, why, and what becomes of that, in words. */
void unconfirmed_describe(const struct decision *d, const struct exchanges *all, struct error *e);
/* When it is known that those that have not will not soon. ROUTER_NEVER: they may at any moment, as may nodes that
 * are down if these are waited for. */
uint64_t unconfirmed_until(const struct decision *d, const struct exchanges *all, bool waits);

#endif
