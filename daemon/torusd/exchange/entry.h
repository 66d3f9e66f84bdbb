/* How nodes enter a barrier or group, and which node is its root. */
#pragma once

#include "daemon/torusd/exchange/job.h"

/* Returns this node's job that waits for the barrier or group of this name, or NULL. */
struct job *entry_waiting(struct exchanges *exchanges, const struct spec *spec);
/* Returns the attempt at a barrier or group of this name that nobody has entered at this node, or NULL. */
struct attempt *entry_preparing(struct exchanges *exchanges, const struct spec *spec);
/* Makes the job of a client that enters what the root has already prepared. Takes *spec over on success.
 * Returns NULL with *e if there is no memory. */
struct job *entry_enter(struct attempt *x, struct spec *spec, const struct exchange_client *client,
                        struct error *e);
/* Called when `root` has prepared the barrier or group: ends older attempts at this node. Returns the job that
 * the new attempt is for, or NULL. */
struct job *entry_prepared(struct exchanges *exchanges, const struct spec *spec, uint32_t root);
/* Checks that the root has not withdrawn `id` since. Returns 0, or -1 with *e (ERROR_BUSY). */
int entry_check_id(struct exchanges *exchanges, const struct spec *spec,
                   const struct exchange_id *id, struct error *e);
/* Checks whether this node or another one is now the root of a group that shrinks. This node then starts to
 * prepare the group, or stops. */
void entry_update_root(struct job *j);
/* Checks that no client of this node, a member, waits for a group of the same name with other members than the root has
 * prepared; if so, fails its job, too. Returns 0, or -1 with *e (ERROR_USAGE). */
int entry_check_members(struct exchanges *exchanges, const struct spec *spec, uint32_t root,
                        struct error *e);
/* The same for a client that is about to enter, and what roots have prepared here; if one differs, fails its attempt. */
int entry_check_prepared(struct exchanges *exchanges, const struct spec *spec, struct error *e);
/* Whether the client's spec differs from the root's; if so, fails the attempt on all nodes. */
bool entry_differs(struct attempt *x, const struct spec *entered, const struct spec *prepared);
