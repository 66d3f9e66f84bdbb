/* Several processes on a node: one of them, the leader, opens the group for all. */
#pragma once

#include <torus/group.h>

typedef int locals_open_fn(const char *name, uint32_t timeout_ms);

/* Finds the other processes of this program on this node. The process with the lowest rank becomes the leader
 * (job.leads) and calls `open`, which also sets *error. All processes return the result of `open`: 0, or -1 with
 * *error. They also return -1 if fewer than job.per_node processes have started in time. */
int locals_open(const char *name, locals_open_fn *open, uint32_t timeout_ms,
                struct torus_error *error);
