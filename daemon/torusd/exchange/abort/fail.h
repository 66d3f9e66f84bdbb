/* How an attempt fails: the root decides for all nodes; any other node tells the root. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Fails an attempt because this node cannot continue it. The root retries if a retry can help, and otherwise
 * fails the attempt on all nodes. Any other node sends the root an objection, and waits for its verdict. Does
 * nothing if the attempt has ended or is decided. *e is copied. */
void attempt_fail(struct attempt *x, const struct error *e);
/* Fails an attempt because blocks were damaged on their way to this node. The root retries a few times, because
 * the blocks may arrive undamaged when they are sent again. */
void attempt_damaged(struct attempt *x, const struct error *e);
/* Fails a job: its attempt if it has one under way; otherwise the job ends, and all nodes that expect its next
 * attempt are told. Does nothing if the job has ended. */
void job_fail(struct job *j, const struct error *e);
