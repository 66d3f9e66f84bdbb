/* The settings of a daemon as facts (daemon/lib/host/facts.h). They contain no secrets. */
#pragma once

#include "daemon/torusd/config.h"

/* Returns lines "setting.NAME value", "port.NAME address" and "port_link_mbit.NAME rate"; malloc'ed. `roots` are the data
 * roots in use. NULL if there is no memory. */
char *setting_facts(const struct config *c, const struct roots *roots);
