/* Tells the client of a job how it ended. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Calls the client's ended(), once: with the error *e, or with the job's result if `e` is NULL. */
void client_tell(struct job *j, const struct error *e);
