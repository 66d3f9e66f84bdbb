/* Attempts that are withdrawn everywhere, so that their job can have another one. */
#ifndef TORUSD_EXCHANGE_ABORT_RETRY_H
#define TORUSD_EXCHANGE_ABORT_RETRY_H

#include "daemon/exchange/record/job.h"

/* Whether the root may withdraw it because a node is busy: it has not begun to run. */
bool retry_may(const struct attempt *x);
/* Whether the root retries when a link goes down: it can avoid links, and nothing is decided yet. */
bool retry_after_link_loss(const struct attempt *x);
/* Whether the root retries when something was damaged on its way. */
bool retry_after_damage(const struct attempt *x);

/* Each withdraws the attempt, and its job begins another one: when a node was busy, */
void retry_later(struct attempt *x, const struct error *busy);
/* because a link went down, without links that are down by then, */
void retry_without_links(struct attempt *x, const struct error *fault);
/* because links that it avoided are up again, */
void retry_links_restored(struct attempt *x);
/* and because something was damaged on its way. */
void retry_damaged(struct attempt *x, const struct error *damage);

/* Not the root: it has withdrawn this attempt. What this node itself has against going on with an open group it
 * says in the next one. */
void retry_withdrawn(struct attempt *x, const struct error *why);

/* Sets a random pause before the job's next attempt, longer each time. */
void retry_pause(struct job *j);
/* When the pause or the job's time is over. */
uint64_t retry_deadline(const struct job *j);

#endif
