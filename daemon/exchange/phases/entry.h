/* How a barrier or group is entered, at every node, and which node leads it. */
#ifndef TORUSD_EXCHANGE_PHASES_ENTRY_H
#define TORUSD_EXCHANGE_PHASES_ENTRY_H

#include "daemon/exchange/record/job.h"

/* The barrier of this name that this node waits for or prepares: its job; NULL: there is none. */
struct job *entry_waiting(struct exchanges *all, const struct spec *spec);
/* The attempt of that name that nobody has entered here; NULL: there is none. */
struct attempt *entry_preparing(struct exchanges *all, const struct spec *spec);
/* The job of a client that enters what the root has prepared already; takes *spec over. NULL with *e. */
struct job *entry_enter(struct attempt *x, struct spec *spec, const struct exchange_client *client,
                        struct error *e);
/* The root has prepared it: attempts before this one are over. Returns the job that it is for, or NULL. */
struct job *entry_prepared(struct exchanges *all, const struct spec *spec, uint32_t root);
/* Whether the root has withdrawn `id` since: then -1 with *e (ERROR_BUSY). */
int entry_check_id(struct exchanges *all, const struct spec *spec, const struct exchange_id *id,
                   struct error *e);
/* If another node leads it from now on, or this one: prepares it here, or no longer. */
void entry_lead(struct job *j);
/* Whether the client's word of it differs from the root's: then it fails for all. */
bool entry_differs(struct attempt *x, const struct spec *entered, const struct spec *prepared);

#endif
