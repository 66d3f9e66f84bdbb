/* One connection to the daemon: frames out, replies in, every wait with a way out of it. */
#ifndef TORUSD_CLIENT_CONNECTION_H
#define TORUSD_CLIENT_CONNECTION_H

#include <torus/torus.h>

#include "proto/control.pb-c.h"
#include "proto/frame.h"

struct torus_client {
    int fd;        /* -1 once the connection is of no more use */
    int cancel_fd; /* eventfd: readable once torus_client_cancel() has been called */
    unsigned timeout_ms;
    struct frame_stream stream;
    char *path;
};

/* What ends a wait early. */
struct wait {
    int64_t deadline_ms;     /* on clock_ms(); negative = none */
    bool deaf;               /* do not heed torus_client_cancel() */
    int (*tick)(void *data); /* called when nothing has come for a while; nonzero cancels */
    void *data;
};

/* Milliseconds on a clock that only goes forward. */
int64_t clock_ms(void);

/* Closes the connection; calls fail with TORUS_ERROR_LOST from here on. */
void connection_drop(struct torus_client *c);

/* Sends a request. Returns 0 (also if the daemon has closed its end, since it may have said why),
 * or -1 with *e set. */
int connection_send(struct torus_client *c, const Control__Request *request, const struct wait *w,
                    struct torus_client_error *e);

/* Waits for the next reply. Returns 0 with a *reply to be freed with control__reply__free_unpacked,
 * or -1 with *e set: _CANCELLED, _TIMEOUT, _LOST, _PROTOCOL, _IO or _MEMORY. */
int connection_receive(struct torus_client *c, const struct wait *w, Control__Reply **reply,
                       struct torus_client_error *e);

#endif
