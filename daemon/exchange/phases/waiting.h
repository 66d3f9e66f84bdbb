/* Describes what a job with spec.wait waits for. */
#ifndef TORUSD_EXCHANGE_PHASES_WAITING_H
#define TORUSD_EXCHANGE_PHASES_WAITING_H

#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/sentence.h"

/* Adds what the job waits for now ("node 4 (1,0)") to the sentence; adds nothing if the job does not wait. */
void waiting_describe(const struct job *j, struct sentence *s);

#endif
