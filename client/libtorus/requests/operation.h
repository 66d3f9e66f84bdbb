/* An operation is started, carried on, and waited for. */
#ifndef TORUSD_CLIENT_OPERATION_H
#define TORUSD_CLIENT_OPERATION_H

#include "client/libtorus/requests/client.h"

/* Milliseconds after an exchange's deadline until the daemon itself is given up. */
#define CLIENT_GRACE 10000

/* Queues the request and makes the operation, which is copied, the one under way. Returns 0, or -1
 * with *e, in which case `done` is never called. */
int client_start(struct torus_client *c, const struct operation *operation,
                 const Control__Request *request, struct torus_error *e);

/* For blocking calls: `done` and `data` of an operation that client_wait() waits for. */
struct outcome {
    bool ended, failed;
    struct torus_error *error; /* filled if it fails; may be NULL */
};
void outcome_set(void *outcome, const struct torus_error *error);

/* Dispatches until the outcome is there. Returns 0, or -1 if it is a failure. */
int client_wait(struct torus_client *c, struct outcome *outcome);

#endif
