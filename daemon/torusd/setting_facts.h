/* The settings of a daemon as facts (daemon/lib/host/facts.h). They contain no secrets. */
#pragma once

#include "daemon/lib/host/facts.h"
#include "daemon/torusd/config.h"

/* Returns lines "setting.NAME value", and "port.NAME address"; malloc'ed. NULL if there is no memory. */
char *setting_facts(const struct config *c, const struct roots *roots);

/* Sets the folders that the daemon uses; borrowed. */
void setting_folders(const struct config *c, const struct roots *roots, struct gather_setup *setup);
