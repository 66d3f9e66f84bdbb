/* How a waiting job reacts when a link or node goes down, or a deadline passes. Times are nanoseconds of the
 * router's clock. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Checks the job because links went down or came up. */
void job_watch_topology(struct job *j);
/* Checks the job's deadlines. job_watch_deadline() returns when to check them next. */
void job_watch_tick(struct job *j, uint64_t now);
uint64_t job_watch_deadline(const struct job *j);
