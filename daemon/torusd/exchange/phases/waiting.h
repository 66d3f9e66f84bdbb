/* Describes what a job with spec.wait waits for. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"
#include "daemon/torusd/exchange/record/sentence.h"

/* Adds what the job waits for now ("node 4 (1,0)") to the sentence; adds nothing if the job does not wait. */
void waiting_describe(const struct job *j, struct sentence *s);
