/* torusd --discover: finds the hosts and cables, instead of running a node. */
#ifndef TORUSD_DISCOVER_H
#define TORUSD_DISCOVER_H

#include "daemon/config.h"

/* Runs until a signal ends it. Returns the exit status of the process. */
int discover_run(const struct config *config);

#endif
