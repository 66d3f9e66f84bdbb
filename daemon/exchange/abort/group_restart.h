/* Restarts of groups that are open. */
#ifndef TORUSD_EXCHANGE_ABORT_GROUP_RESTART_H
#define TORUSD_EXCHANGE_ABORT_GROUP_RESTART_H

#include "daemon/exchange/record/job.h"

/* The root has failed the group whose first attempt had this id, whichever attempt this node knows of. */
void group_restart_failed(struct exchanges *all, const struct exchange_id *first,
                          const struct error *why);
/* This node's own group, of this first id, that has failed; or NULL. */
const struct attempt *group_restart_find_failed(const struct exchanges *all,
                                                const struct exchange_id *first);
/* The job that is restarted as `id`, whatever its state; or that this node had not heard `go` of. NULL with
 * *e: there is none here, or `id` has been withdrawn. */
struct job *group_restart_find(struct exchanges *all, const struct exchange_id *first,
                               const struct exchange_id *id, struct error *e);

#endif
