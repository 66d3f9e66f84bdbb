/* One attempt to connect a socket. (That of libuv leaves no time to set it up, and does not show
 * why it has failed.) */
#ifndef TORUSD_NET_DOORS_DIAL_H
#define TORUSD_NET_DOORS_DIAL_H

#include <uv.h>

#include "daemon/net/sockets/reserve.h"
#include "daemon/net/sockets/sockets.h"

struct dial;

struct dial_user {
    /* The attempt is over: a connected socket, non-blocking, that is the callee's; or -1 with an
     * errno, and the other host at which the packets reached their hop limit (hops.h), or NULL. */
    void (*done)(void *context, int fd, int error, const char *farther);
    /* Its handle has been closed, after done() or dial_cancel(). */
    void (*closed)(void *context);
    void *context, *closed_context;
};

/* Begins to connect; `interface` is that to which the socket is bound, or "". Returns NULL with errno
 * if it fails at once: then nothing is called. */
struct dial *dial_start(uv_loop_t *loop, const struct sockaddr *address,
                        const struct socket_options *options, const char *interface,
                        struct reserve *reserve, const struct dial_user *user);

/* done() will not be called. */
void dial_cancel(struct dial *dial);

#endif
