/* torusd --from-env: the configuration of a daemon that a launcher has started for the time of a job. Its torus, rank
 * and ports come from the cluster file, its folders and control socket are made for the job. */
#pragma once

#include "daemon/torusd/config.h"

#define DEFAULT_CLUSTER_FILE "/etc/torusd/cluster.ini"

/* Whether the settings have to be known before from_env_begin(), because what it sets depends on this option. */
bool from_env_needs(const char *option);

/* Sets what comes from the cluster file and from the launcher's variables; options that are set afterwards override
 * it. A rank that is set already stays: it decides which host this is. Returns 0, or -1 with *e. */
int from_env_begin(struct config *c, struct error *e);

/* Completes what no option has set: control socket, state folder and data root. `make`: makes the folders; otherwise
 * the data root is left out. Returns 0, or -1 with *e. */
int from_env_finish(struct config *c, bool make, struct error *e);

/* Logs how this node has found its rank, and where programs find the daemon. */
void from_env_log(const struct config *c);

/* Removes the folders of the job that are empty, after the daemon has ended. */
void from_env_remove(const struct config *c);
