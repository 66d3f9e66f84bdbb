/* How an attempt reacts when a link or node goes down, or a deadline passes. Times are nanoseconds of the
 * router's clock. */
#pragma once

#include "daemon/torusd/exchange/record/attempt.h"

/* Checks the attempt because links went down or came up. */
void fault_watch_topology(struct attempt *x);
/* Checks the attempt's deadlines. fault_watch_deadline() returns when to check them next. */
void fault_watch_tick(struct attempt *x, uint64_t now);
uint64_t fault_watch_deadline(const struct attempt *x);
/* Whether a link of this node that the attempt needs is down. If so, sets *e to a text that names the link. */
bool fault_watch_own_link_down(const struct attempt *x, struct error *e);
/* Whether the attempt's root is down, or has restarted and does not know the attempt. */
bool fault_watch_root_gone(const struct attempt *x);
/* Sets *e to a text that says that the root went down. */
void fault_watch_name_root(const struct attempt *x, struct error *e);
/* Sets *e to a text that says that this needed node, which is not the root, is down. */
void fault_watch_name_down(uint32_t node, struct error *e);
/* Returns until when two starts of the root cannot be told apart; ROUTER_NEVER: only one start is known. */
uint64_t fault_watch_root_differs_until(const struct attempt *x);
