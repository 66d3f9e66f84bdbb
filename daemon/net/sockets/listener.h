/* A listening socket that accepts also when the last descriptors are in use. (That of libuv closes
 * what it cannot accept, and can turn in circles when it has no descriptor even for that.) */
#ifndef TORUSD_NET_SOCKETS_LISTENER_H
#define TORUSD_NET_SOCKETS_LISTENER_H

#include <uv.h>

#include "daemon/net/sockets/reserve.h"
#include "proto/error.h"

struct listener {
    uv_poll_t poll;
    uv_timer_t retry;
    int type; /* of the socket; 0: SOCK_STREAM */
    int fd;
    unsigned handles; /* open */
    bool closing, short_of;
    struct reserve *reserve;
    /* The socket before it is bound, or NULL: what is set there, its connections have from the start.
     * Returns 0, or -1 with errno: it is not opened. */
    int (*prepare)(void *context, int fd, sa_family_t family);
    /* A connection, non-blocking; the callee closes it. */
    void (*accepted)(void *context, int fd);
    void (*closed)(void *context);
    void *context;
};

/* Binds a socket to the address, listens, and accepts from when the loop runs. *l may be opened
 * again after `closed`. On failure nothing is left open: -1 with errno. */
int listener_open(struct listener *l, uv_loop_t *loop, const struct sockaddr *address,
                  socklen_t length);

/* `closed` is called when the loop has closed its handles. */
void listener_close(struct listener *l);

#endif
