/* The record of a client and of its operation under way (one at most). One epoll descriptor covers everything that
 * the client waits for. */
#pragma once

#include <torus/torus.h>

#include "client/libtorus/requests/connection.h"

#define NEVER INT64_MAX

/* Converts the last reply to the public result, and stores it at `result`. Takes ownership of `reply`. Returns 0, or
 * -1 with *e. */
typedef int convert_fn(Control__Reply *reply, void *result, struct torus_error *e);

struct pending_request {
    Control__Reply__KindCase expects; /* the reply that means success */
    convert_fn *convert;
    void *result; /* where the converted reply goes */
    torus_done_fn *done;
    void *data;
    int64_t limit_ms; /* time limit, counted from acceptance for an exchange; 0: no limit */

    bool is_exchange; /* an exchange or barrier: progress replies come before the last reply */
    bool is_copy;     /* the same for a copy, which has progress of another kind */
    bool commits;     /* the exchange writes files, so its outcome can be in doubt */
    bool waits;       /* after a restart of the daemon, the request is sent again if that is safe */
    torus_progress_fn *progress;
    torus_copy_progress_fn *copy_progress;
    void *progress_data;
};

/*      client_start()           last reply, deadline, connection closed
 *  IDLE --------------> RUNNING ----------------------------------------> IDLE
 *                         ^|| cancel                                       ^
 *        request sent again|||                                              |
 *                       AWAY|  daemon restarted                            |
 *                           +-----------------> CANCELLING ----------------+
 */
enum phase { PHASE_IDLE, PHASE_RUNNING, PHASE_AWAY, PHASE_CANCELLING };

struct torus_client {
    struct connection connection;
    int epoll_fd;     /* watches the connection and the two descriptors below */
    int cancel_fd;    /* eventfd: readable once torus_client_cancel() has been called */
    int timer_fd;     /* readable when a deadline or a tick has passed */
    uint32_t watched; /* the events of the connection that epoll watches; 0: none */
    unsigned timeout_ms;

    enum phase phase;
    struct pending_request pending; /* under way, unless idle */
    struct torus_progress progress; /* of that operation */
    struct torus_copy_progress copy;
    bool accepted; /* the daemon has accepted it, or has reported its progress */
    char id[64];
    char missing[128];            /* progress.missing */
    int64_t limit_ms;             /* the limit from which deadline_ms was computed */
    int64_t deadline_ms, tick_ms; /* on clock_ms(), or NEVER */

    /* For pending.waits: a copy of the request, to send it again to a restarted daemon; how long to try; when to try
     * next (on clock_ms(), or NEVER). */
    uint8_t *request;
    size_t request_length;
    int64_t until_ms, retry_ms;
    char waits_for[sizeof((struct torus_error *)0)->text];
};

/* Starts operations and waits for their end. */

/* Milliseconds after the timeout of an exchange in which the daemon must report its end. */
#define CLIENT_GRACE 10000

/* Queues the request, and makes a copy of `pending` the operation under way. Returns 0, or -1 with *e, after which
 * `done` is not called. */
int client_start(struct torus_client *c, const struct pending_request *pending,
                 const Control__Request *request, struct torus_error *e);

/* For blocking calls: start the operation with outcome_set() as `done` and a struct outcome as `data`, and wait for
 * it with CLIENT_WAIT(). */
struct outcome {
    bool ended, failed;
    struct torus_error *error; /* set on failure; may be NULL */
};

void outcome_set(void *outcome, const struct torus_error *error);
/* Dispatches events until the operation has ended; `started` is what the function has returned that has started it.
 * Returns 0, or -1 if it has failed, with *outcome->error. */
int client_wait(struct torus_client *c, int started, struct outcome *outcome);
/* The same for an expression that starts an operation with `outcome_set` and `&outcome`. */
#define CLIENT_WAIT(client, error_, started)                                                       \
    __extension__({                                                                                \
        struct outcome outcome = {.error = (error_)};                                              \
        client_wait((client), (started), &outcome);                                                \
    })
