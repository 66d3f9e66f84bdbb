/* Several processes on a node: one of them, the leader, opens the group for all of them. */
#ifndef TORUSD_MPI_LOCALS_H
#define TORUSD_MPI_LOCALS_H

#include <torus/group.h>

typedef int locals_open_fn(const char *name, uint32_t timeout_ms);

/* Finds the other processes of this program on this node. The process with the lowest rank leads
 * (job.leads): it calls `open`, which also sets *error, and whose result all processes return.
 * Returns -1 with *error also if fewer than job.per_node processes have come together in time. */
int locals_open(const char *name, locals_open_fn *open, uint32_t timeout_ms,
                struct torus_error *error);

#endif
