/* Describes the faults of a torus in sentences with the names of the machines. */
#pragma once

#include "client/cli/serving/scene.h"

#define FAULTS_MOST 64u

/* Returns a list of {"node", "port" (null: the node itself), "text", "why" (which may change often)}, the first
 * FAULTS_MOST of them. NULL if memory is short. */
json_t *faults_value(const struct scene *s);
