/* Describes the faults of a torus in sentences with the names of the machines. */
#ifndef TORUSD_CLI_FAULTS_H
#define TORUSD_CLI_FAULTS_H

#include "client/cli/serving/scene.h"

#define FAULTS_MOST 64u

/* Whether a node says that the link at this end, which exists, is not up; or its other end does. */
bool faults_link_down(const struct scene *s, uint32_t rank, unsigned port);
/* Whether a node says that it is up, and none that it is not. */
bool faults_link_up(const struct scene *s, uint32_t rank, unsigned port);

/* Returns a list of {"node", "port" (null: the node itself), "text", "why" (which may change often)}, at most FAULTS_MOST; *more is set to the number of
 * those that are not in it. `status` is that of the node that was asked. NULL if memory is short. */
json_t *faults_value(const struct scene *s, const struct torus_status *status, size_t *more);

#endif
