/* The options of torusd --from-env. */
#pragma once

#include "daemon/torusd/config.h"

#define DEFAULT_CLUSTER_FILE "/etc/torusd/cluster.ini"

/* Functions for the table of settings (settings.h). */
int from_env_set(struct config *c, const char *value, struct error *e);
int from_env_set_cluster(struct config *c, const char *value, struct error *e);
int from_env_set_name(struct config *c, const char *value, struct error *e);
