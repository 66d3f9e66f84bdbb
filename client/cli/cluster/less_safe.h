/* What a setup makes less safe on this host. */
#ifndef TORUSD_CLI_LESS_SAFE_H
#define TORUSD_CLI_LESS_SAFE_H

#include <jansson.h>

#include "client/cli/cluster/setup_plan.h"

/* Returns an array with a sentence for each change that makes the host less safe: links that are not encrypted any more,
 * groups whose members could not exchange before, data roots with files of the system, a key elsewhere that is not used
 * any more. A first setup makes nothing less safe. NULL if memory is short. */
json_t *less_safe(const struct setup_plan *p, const struct setup *s);

#endif
