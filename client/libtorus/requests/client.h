/* The record of a client, and of its operation under way, of which there is one at most: a
 * request, the replies to it, and every way in which it can end. One epoll descriptor covers all
 * waiting. */
#ifndef TORUSD_CLIENT_CLIENT_H
#define TORUSD_CLIENT_CLIENT_H

#include <torus/torus.h>

#include "client/libtorus/requests/connection.h"

#define NEVER INT64_MAX

/* Turns the last reply, which it takes over, into the public result, and stores that at `result`.
 * Returns 0, or -1 with *e. */
typedef int convert_fn(Control__Reply *reply, void *result, struct torus_error *e);

struct operation {
    Control__Reply__KindCase expects; /* the reply that means success */
    convert_fn *convert;
    void *result; /* where the converted reply goes */
    torus_done_fn *done;
    void *data;
    int64_t limit_ms; /* how long it may take, an exchange once it is accepted; 0 = no limit */

    /* Exchanges and barriers: progress replies come before the last one. */
    bool is_exchange;
    bool commits; /* its outcome may be in doubt at the end */
    bool waits;   /* the client waits for its daemon, too: after a restart it sends the request
                   * again, if that does no harm */
    torus_progress_fn *progress;
    void *progress_data;
};

/*      client_start()           last reply, deadline, connection closed
 *  IDLE --------------> RUNNING ----------------------------------------> IDLE
 *                         ^|| cancel                                       ^
 *        asked once more  |||                                              |
 *                       AWAY|  daemon restarted                            |
 *                           +-----------------> CANCELLING ----------------+
 */
enum phase { PHASE_IDLE, PHASE_RUNNING, PHASE_AWAY, PHASE_CANCELLING };

struct torus_client {
    struct connection connection;
    int epoll_fd;     /* for the three descriptors below */
    int cancel_fd;    /* eventfd: readable once torus_client_cancel() has been called */
    int timer_fd;     /* readable when a deadline or a tick has come */
    uint32_t watched; /* the events of the connection that epoll watches; 0 = none */
    unsigned timeout_ms;

    enum phase phase;
    struct operation operation;     /* under way, unless idle */
    struct torus_progress progress; /* of that operation */
    char id[64];
    char missing[128];            /* progress.missing */
    int64_t limit_ms;             /* how long the next reply, or the last one, may take */
    int64_t deadline_ms, tick_ms; /* on clock_ms(); NEVER */

    /* operation.waits: the request, to be sent again to a daemon that has been restarted, */
    uint8_t *request;
    size_t request_length;
    int64_t until_ms, retry_ms; /* for how long, and when it is tried next; NEVER */
    char waits_for[sizeof((struct torus_error *)0)->text];
};

#endif
