/* The user of the links: what a router asks of, and tells, the exchanges above it. */
#ifndef TORUSD_ROUTER_INTERFACE_HANDLER_H
#define TORUSD_ROUTER_INTERFACE_HANDLER_H

#include "daemon/base/slab.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct outgoing;

/* The user of the links: receives the frames of exchanges, and is asked for the next to send. */
struct router_handler {
    void *context;
    /* A frame of an exchange has come in on an up link; all is borrowed. Returns 0, or -1 with *e:
     * the peer broke the protocol and its link is closed. */
    int (*frame)(void *context, unsigned port, const struct peer_message *message,
                 const struct extents *body, uint32_t body_length, struct error *e);
    /* The next data frame of our own for this port, or NULL. */
    struct outgoing *(*next)(void *context, unsigned port);
    /* A link somewhere has come up or gone down. */
    void (*topology)(void *context);
};

#endif
