/* What a job that waits (spec.wait) waits for, in words. */
#ifndef TORUSD_EXCHANGE_PHASES_WAITING_H
#define TORUSD_EXCHANGE_PHASES_WAITING_H

#include "daemon/exchange/record/job.h"
#include "daemon/exchange/record/sentence.h"

/* Adds what it waits for at the moment ("node 4 (1,0)"), if it waits. */
void waiting_describe(const struct job *j, struct sentence *s);

#endif
