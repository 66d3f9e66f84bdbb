/* The options of torusd --from-env. */
#ifndef TORUSD_FROM_ENV_SETTINGS_H
#define TORUSD_FROM_ENV_SETTINGS_H

#include "daemon/config.h"

#define DEFAULT_CLUSTER_FILE "/etc/torusd/cluster.ini"

/* Functions for the table of settings (settings.h). */
int from_env_set(struct config *c, const char *value, struct error *e);
int from_env_set_cluster(struct config *c, const char *value, struct error *e);
int from_env_set_name(struct config *c, const char *value, struct error *e);

#endif
