/* Decides when a job that was asked for at this node is started. */
#pragma once

#include "daemon/torusd/exchange/attempt.h"

/* Starts all jobs that can be started now. */
void start_queue_advance(struct exchanges *exchanges);
/* Sets how many jobs all users together may have asked for, and may have under way. */
void start_queue_set_capacities(struct shares *shares);
