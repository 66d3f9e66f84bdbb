/* What a link or node that goes down, or a deadline that passes, makes of a job that waits. */
#ifndef TORUSD_EXCHANGE_PHASES_JOB_WATCH_H
#define TORUSD_EXCHANGE_PHASES_JOB_WATCH_H

#include "daemon/exchange/record/job.h"

/* Links have gone down or come up. */
void job_watch_topology(struct job *j);
/* Time has passed; and when that matters next. */
void job_watch_tick(struct job *j, uint64_t now);
uint64_t job_watch_deadline(const struct job *j);

#endif
