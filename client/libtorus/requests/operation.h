/* Starts operations and waits for their end. */
#pragma once

#include "client/libtorus/requests/client.h"

/* Milliseconds after the timeout of an exchange in which the daemon must report its end. */
#define CLIENT_GRACE 10000

/* Queues the request, and makes a copy of `operation` the operation under way. Returns 0, or -1 with *e, after which
 * `done` is not called. */
int client_start(struct torus_client *c, const struct operation *operation,
                 const Control__Request *request, struct torus_error *e);

/* For blocking calls: start the operation with outcome_set() as `done` and a struct outcome as `data`, and wait for
 * it with client_wait(). */
struct outcome {
    bool ended, failed;
    struct torus_error *error; /* set on failure; may be NULL */
};
void outcome_set(void *outcome, const struct torus_error *error);

/* Dispatches events until the operation has ended. Returns 0, or -1 if it has failed, with *outcome->error. */
int client_wait(struct torus_client *c, struct outcome *outcome);
