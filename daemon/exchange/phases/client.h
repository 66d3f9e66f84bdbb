/* Tells the client of a job how it ended. */
#ifndef TORUSD_EXCHANGE_PHASES_CLIENT_H
#define TORUSD_EXCHANGE_PHASES_CLIENT_H

#include "daemon/exchange/record/job.h"

/* Calls the client's ended(), once: with the error *e, or with the job's result if `e` is NULL. */
void client_tell(struct job *j, const struct error *e);

#endif
