/* A client, and the one operation that it may have under way: a request, the replies to it, and
 * every way in which it can end. All waiting is on one epoll descriptor. */
#ifndef TORUSD_CLIENT_CLIENT_H
#define TORUSD_CLIENT_CLIENT_H

#include <torus/torus.h>

#include "client/libtorus/requests/connection.h"

/* Turns the last reply, which it takes over, into the public result, and stores that at `result`.
 * Returns 0, or -1 with *e. */
typedef int convert_fn(Control__Reply *reply, void *result, struct torus_error *e);

/* Milliseconds after an exchange's deadline until the daemon itself is given up. */
#define CLIENT_GRACE 10000

struct operation {
    Control__Reply__KindCase expects; /* the reply that it succeeds with */
    convert_fn *convert;
    void *result; /* where that goes */
    torus_done_fn *done;
    void *data;
    int64_t limit_ms; /* that it may take, an exchange once it is accepted; 0 = no limit */

    /* Exchanges and barriers: there are replies before the last one. */
    bool is_exchange;
    bool commits; /* it may end in doubt */
    bool
        waits; /* for its daemon, too: it is asked again after a restart, where that does no harm */
    torus_progress_fn *progress;
    void *progress_data;
};

/* Queues the request and makes the operation, which is copied, the one under way. Returns 0, or -1
 * with *e, in which case `done` is never called. */
int client_start(struct torus_client *c, const struct operation *operation,
                 const Control__Request *request, struct torus_error *e);

/* The limit that torus_client_set_timeout() has set. */
int64_t client_limit_ms(const struct torus_client *c);

/* For blocking calls: `done` and `data` of an operation that client_wait() waits for. */
struct outcome {
    bool ended, failed;
    struct torus_error *error; /* filled if it fails; may be NULL */
};
void outcome_set(void *outcome, const struct torus_error *error);

/* Dispatches until the outcome is there. Returns 0, or -1 if it is a failure. */
int client_wait(struct torus_client *c, struct outcome *outcome);

#endif
