/* One attempt to connect a socket. (libuv's function gives no chance to set up the socket before, and does
 * not tell why the attempt failed.) */
#pragma once

#include <uv.h>

#include "daemon/lib/net/sockets/reserve.h"
#include "daemon/lib/net/sockets/sockets.h"

struct dial;

struct dial_user {
    /* The attempt is over. `fd` is a connected, non-blocking socket, which the callee owns; or -1, with an
     * errno in `error`. If packets reached their hop limit at another host (hops.h), `farther` is its
     * address, otherwise NULL. */
    void (*done)(void *context, int fd, int error, const char *farther);
    /* The handle of the attempt has been closed, after done() or dial_cancel(). */
    void (*closed)(void *context);
    void *context, *closed_context;
};

/* Starts to connect; the socket is bound to `interface`, unless that is "". Returns NULL with errno if that
 * fails at once; then no function is called. */
struct dial *dial_start(uv_loop_t *loop, const struct sockaddr *address,
                        const struct socket_options *options, const char *interface,
                        struct reserve *reserve, const struct dial_user *user);

/* Cancels the attempt: done() will not be called, but closed() will. */
void dial_cancel(struct dial *dial);
