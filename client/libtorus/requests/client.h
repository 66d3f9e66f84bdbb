/* The record of a client, and of the one operation that it may have under way: a request, the replies to it, and
 * every way in which it can end. All waiting is on one epoll descriptor. */
#ifndef TORUSD_CLIENT_CLIENT_H
#define TORUSD_CLIENT_CLIENT_H

#include <torus/torus.h>

#include "client/libtorus/requests/connection.h"

#define NEVER INT64_MAX

/* Turns the last reply, which it takes over, into the public result, and stores that at `result`.
 * Returns 0, or -1 with *e. */
typedef int convert_fn(Control__Reply *reply, void *result, struct torus_error *e);

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
    bool waits;   /* for its daemon, too: it is asked again after a restart, if that does no harm */
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
    int epoll_fd;     /* of the three below */
    int cancel_fd;    /* eventfd: readable once torus_client_cancel() has been called */
    int timer_fd;     /* readable when a deadline or a tick has come */
    uint32_t watched; /* what epoll watches the connection for; 0 = it does not */
    unsigned timeout_ms;

    enum phase phase;
    struct operation operation;     /* under way, unless idle */
    struct torus_progress progress; /* of it */
    char id[64];
    char missing[128];            /* progress.missing */
    int64_t limit_ms;             /* that the next reply, or the last one, may take */
    int64_t deadline_ms, tick_ms; /* on clock_ms(); NEVER */

    /* operation.waits: the request, for a daemon that has been restarted; */
    uint8_t *request;
    size_t request_length;
    int64_t until_ms, retry_ms; /* for how long, and when it is tried next; NEVER */
    char waits_for[sizeof((struct torus_error *)0)->text];
};

#endif
