/* What a setup makes less safe on this host, compared with the configuration that it has. */
#pragma once

#include <jansson.h>

#include "client/cli/cluster/setup_plan.h"

/* Returns an array with a sentence for each change that makes the host less safe: links are not encrypted any more,
 * members of a group may exchange who could not before, a data root has files of the system, a key file in another
 * place is not used any more. A first setup makes nothing less safe. Returns NULL if there is not enough memory. */
json_t *less_safe(const struct setup_plan *p, const struct setup *s);

/* Whether the host's torusd.ini has this data root already before the setup, under the same name. */
bool less_safe_had_root(const struct setup_plan *p, const char *root);
