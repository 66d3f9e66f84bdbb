/* A listening socket that can accept even when all descriptors are in use. (libuv's function closes
 * connections that it cannot accept, and loops forever if it has no descriptor for that.) */
#pragma once

#include <uv.h>

#include "daemon/lib/net/sockets/reserve.h"
#include "proto/error.h"

struct listener {
    uv_poll_t poll;
    uv_timer_t retry;
    int type; /* type of the socket; 0: SOCK_STREAM */
    int fd;
    unsigned handles; /* number of open handles */
    bool closing, no_descriptors;
    struct reserve *reserve;
    /* Sets options of the socket before it is bound, which its connections inherit; may be NULL. Returns 0,
     * or -1 with errno: then the listener is not opened. */
    int (*prepare)(void *context, int fd, sa_family_t family);
    /* A connection, non-blocking; the callee owns it. */
    void (*accepted)(void *context, int fd);
    void (*closed)(void *context);
    void *context;
};

/* Binds a socket to the address, and listens; connections are accepted when the loop runs. *l may be opened
 * again after `closed`. Returns 0, or -1 with errno and nothing left open. */
int listener_open(struct listener *l, uv_loop_t *loop, const struct sockaddr *address,
                  socklen_t length);

/* Accepts nothing for so long; connections wait in the kernel's queue. */
void listener_pause(struct listener *l, uint64_t milliseconds);

/* Closes the listener; `closed` is called when the loop has closed its handles. */
void listener_close(struct listener *l);
