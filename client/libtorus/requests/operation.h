/* Starting an operation, and waiting for its end. */
#ifndef TORUSD_CLIENT_OPERATION_H
#define TORUSD_CLIENT_OPERATION_H

#include "client/libtorus/requests/client.h"

/* Milliseconds after an exchange's deadline, after which the daemon itself is given up. */
#define CLIENT_GRACE 10000

/* Queues the request, and makes a copy of `operation` the operation under way. Returns 0, or -1
 * with *e; then `done` is never called. */
int client_start(struct torus_client *c, const struct operation *operation,
                 const Control__Request *request, struct torus_error *e);

/* For blocking calls: outcome_set() as `done`, and this as `data`, of an operation that
 * client_wait() waits for. */
struct outcome {
    bool ended, failed;
    struct torus_error *error; /* set on failure; may be NULL */
};
void outcome_set(void *outcome, const struct torus_error *error);

/* Dispatches events until the operation has ended. Returns 0, or -1 if it has failed. */
int client_wait(struct torus_client *c, struct outcome *outcome);

#endif
