/* An exchange fails: the root decides for all, any other node tells it. */
#ifndef TORUSD_EXCHANGE_ABORT_FAIL_H
#define TORUSD_EXCHANGE_ABORT_FAIL_H

#include "daemon/exchange/record/job.h"

/* This node cannot go on: the root fails the attempt for all, or retries; any other node tells it. */
void attempt_fail(struct attempt *x, const struct error *e);
/* The same: blocks were damaged on their way here. Sent again, they may arrive whole. */
void attempt_damaged(struct attempt *x, const struct error *e);
/* The same of a job, whether it has an attempt or waits for one. */
void job_fail(struct job *j, const struct error *e);

#endif
