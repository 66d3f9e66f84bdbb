/* What a link or node that goes down, or a deadline that passes, makes of an attempt. */
#ifndef TORUSD_EXCHANGE_PHASES_FAULT_WATCH_H
#define TORUSD_EXCHANGE_PHASES_FAULT_WATCH_H

#include "daemon/exchange/record/attempt.h"

/* Links have gone down or come up. */
void fault_watch_topology(struct attempt *x);
/* Time has passed; and when that matters next. */
void fault_watch_tick(struct attempt *x, uint64_t now);
uint64_t fault_watch_deadline(const struct attempt *x);
/* Whether a link of this node is down that the attempt needs; then *e says which. */
bool fault_watch_own_link_down(const struct attempt *x, struct error *e);
/* Its root is down, or up again without any memory of it; and that in words. */
bool fault_watch_root_gone(const struct attempt *x);
void fault_watch_name_root(const struct attempt *x, struct error *e);
/* The same of any other node that is needed. */
void fault_watch_name_down(uint32_t node, struct error *e);
/* Until when two starts of its root cannot be told from each other; ROUTER_NEVER: there is but one. */
uint64_t fault_watch_root_differs_until(const struct attempt *x);

#endif
