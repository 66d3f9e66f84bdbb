/* How an attempt, or a waiting job, reacts when a link or node goes down, or a deadline passes. Times are nanoseconds of the
 * router's clock. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"
#include "daemon/torusd/exchange/job.h"

/* Checks the attempt because links went down or came up. */
void fault_watch_topology(struct attempt *x);
/* Checks the attempt's deadlines. fault_watch_deadline() returns when to check them next. */
void fault_watch_tick(struct attempt *x, uint64_t now);
uint64_t fault_watch_deadline(const struct attempt *x);
/* Whether a link of this node that the attempt needs is down. If so, sets *e to a text that names the link. */
bool fault_watch_own_link_down(const struct attempt *x, struct error *e);

/* Checks the job because links went down or came up. */
void job_watch_topology(struct job *j);
/* Checks the job's deadlines. job_watch_deadline() returns when to check them next. */
void job_watch_tick(struct job *j, uint64_t now);
uint64_t job_watch_deadline(const struct job *j);
