/* How a node finds the open group that a root restarts or fails. */
#pragma once

#include "daemon/torusd/exchange/record/job.h"

/* Ends this node's job of a group that its root has failed. `first` is the id of the group's first attempt,
 * because this node may not know the latest one. Does nothing if there is no such job. */
void group_restart_failed(struct exchanges *exchanges, const struct exchange_id *first,
                          const struct error *why);
/* Returns the failed attempt of an open group whose root is this node and whose first attempt had this id, or
 * NULL. */
const struct attempt *group_restart_find_failed(const struct exchanges *exchanges,
                                                const struct exchange_id *first);
/* Finds the job of this node whose group, first opened as `first`, its root now restarts as `id`. The job may
 * be in any state, and this node need not have heard `go`. Returns NULL with *e if this node does not have the
 * group (ERROR_REFUSED), or has a newer attempt than `id` (ERROR_BUSY). */
struct job *group_restart_find(struct exchanges *exchanges, const struct exchange_id *first,
                               const struct exchange_id *id, struct error *e);
