/* What the client of a job is told, once. */
#ifndef TORUSD_EXCHANGE_PHASES_CLIENT_H
#define TORUSD_EXCHANGE_PHASES_CLIENT_H

#include "daemon/exchange/record/job.h"

/* Of an error or, if `e` is NULL, of its result. */
void client_tell(struct job *j, const struct error *e);

#endif
