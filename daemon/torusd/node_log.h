/* What a node logs about its settings. */
#pragma once

#include "daemon/torusd/config.h"

/* Logs which keys are in use. */
void node_log_keys(const struct secrets *s);
/* Logs which settings of the fresh configuration are different now, and which differ but need a restart. */
void node_log_changes(const struct config *now, const struct roots *roots,
                      const struct config *fresh);
