/* The records of the links' TCP connections. */
#pragma once

#include <uv.h>

#include "daemon/lib/net/carrier/carrier.h"
#include "daemon/lib/net/sockets/pacing.h"
#include "daemon/lib/net/sockets/reserve.h"
#include "daemon/lib/net/sockets/sockets.h"
#include "daemon/torusd/net/connector/connector.h"
#include "daemon/torusd/net/tcp/setup.h"
#include "daemon/torusd/net/tcp/tcp_stat.h"
#include "daemon/torusd/router/outgoing.h"
#include "daemon/torusd/router/router.h"

struct cipher;
struct link;
struct router;

struct connection {
    uv_tcp_t socket;
    uv_timer_t linger;
    uv_write_t write;
    uv_shutdown_t shutdown;
    struct tcp *tcp;
    struct link *link;
    struct connection *next_dirty;
    unsigned port;
    unsigned handles; /* open */
    bool dirty, writing, closing, lingers;
    bool held; /* reading is stopped for now */
    struct pacing pacing;
    struct tcp_rate rate;
    struct cipher *cipher;       /* NULL: not encrypted, or not yet */
    bool sealed;                 /* the bytes that are being written are in the cipher */
    struct outgoing_queue batch; /* being written; encrypted bytes are in the cipher instead */
    struct outgoing *last;       /* to be written before the connection closes */
};

struct tcp {
    struct tcp_setup set;
    struct router *router;
    struct socket_options options;
    struct connector_user user;
    uv_timer_t recheck; /* when to recheck all connectors */
    struct reserve reserve;
    struct carrier *carrier; /* NULL: interfaces cannot be watched */
    struct connection *dirty;
    unsigned handles; /* not closed yet: parts of connectors, connections, the rest */
    unsigned lingering;
    bool closing;
    bool slow;
    struct outgoing_pool
        frames;     /* pool for the frames of last messages, after the router has been freed */
    unsigned ports; /* torus_ports() */
    struct connector connector[];
};

/* The pool of the frames that are written. */
static inline struct outgoing_pool *tcp_frames(struct tcp *tcp)
{
    return tcp->router != NULL ? router_outgoing(tcp->router) : &tcp->frames;
}
