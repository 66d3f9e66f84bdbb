/* The settings of a daemon as facts (daemon/host/facts.h). They contain no secrets. */
#ifndef TORUSD_SETTING_FACTS_H
#define TORUSD_SETTING_FACTS_H

#include "daemon/config.h"
#include "daemon/host/gather.h"

/* Returns lines "setting.NAME value", and "port.NAME address"; malloc'ed. NULL if there is no memory. */
char *setting_facts(const struct config *c, const struct roots *roots);

/* Sets the folders that the daemon uses; borrowed. */
void setting_folders(const struct config *c, const struct roots *roots, struct gather_setup *setup);

#endif
