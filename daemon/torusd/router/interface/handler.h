/* The functions of the exchanges that a router calls. */
#pragma once

#include "daemon/lib/base/slab.h"
#include "proto/error.h"
#include "proto/peer/peer_message.h"

struct outgoing;

/* The user of the links: it receives the frames of exchanges, and provides the next ones to send. */
struct router_handler {
    void *context;
    /* A frame of an exchange has arrived on a link that is up; all arguments are borrowed. Returns 0, or -1
     * with *e: the peer broke the protocol, and the router closes the link. */
    int (*frame)(void *context, unsigned port, const struct peer_message *message,
                 const struct extents *body, uint32_t body_length, struct error *e);
    /* Returns the next data frame of this node for this port, owned by the router; or NULL. */
    struct outgoing *(*next)(void *context, unsigned port);
    /* A link somewhere has come up or gone down. */
    void (*topology)(void *context);
    /* Another node has confirmed link states (daemon/torus-routed/planner.h). May be NULL. */
    void (*confirmed)(void *context);
};
