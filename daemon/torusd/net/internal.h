/* The records of the links' TCP connections. */
#pragma once

#include <uv.h>

#include "daemon/lib/net/carrier.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/net/connector.h"
#include "daemon/torusd/net/tcp.h"
#include "daemon/torusd/net/tcp_stat.h"
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

/* The life of a connection: it is freed only when all its handles are closed. */

/* Makes a connection of `port`, and takes over the descriptor. Returns NULL, with the descriptor closed, if
 * there is no memory. */
struct connection *connection_new(struct tcp *tcp, unsigned port, int fd);

/* Tells the link of a connection that the connection has failed for this reason. */
void connection_broken(struct connection *c, const char *reason);

/* Closes the handles of a connection, which is freed when the loop has closed them. */
void connection_close_handles(struct connection *c);

/* Closes the connection with a reset: data that was not acknowledged is lost. Returns false if the reset
 * fails. */
bool connection_reset(struct connection *c);

/* Marks a connection that has something to send, for the next tcp_flush(). */
void connection_mark_dirty(struct connection *c);

/* To be called when a handle of `tcp` has been closed; the last call frees `tcp`. */
void tcp_release(struct tcp *tcp);

/* Reads into the router's memory, through the cipher where links are encrypted. */

/* Starts to read. Returns 0, or -1 if libuv cannot. */
int reading_start(struct connection *c);

/* Reads again if the router wants to. */
void reading_resume(struct connection *c);

/* Writes the frames of the router, as many as it has in one multi-buffer write. */

/* Writes the frames for this connection, unless a write is under way. Returns true if there are more than
 * fit into one write. */
bool writing_flush(struct connection *c);

/* Connections that the router has closed linger until the peer has read the last message. */

/* As router_io.close(). */
void closing_begin(void *context, void *connection, struct outgoing *last);

/* Writes the last message. To be called when everything else has been written. */
void closing_say_last(struct connection *c);

/* The connectors of all ports: they pass new connections to the router. */

/* Makes the connectors of all ports that have a neighbour; `-` ports begin to listen. Returns 0, or -1 with
 * *e: another program listens on the address of a port, or only root may. */
int port_sockets_open(struct tcp *tcp, uint32_t rank, struct error *e);

/* As router_io.dial(). */
void port_sockets_dial(void *context, unsigned port);

/* Tells the router which dials and listeners have ended, and why. (They end in places where the router must
 * not be called.) */
void port_sockets_report(struct tcp *tcp);

/* Watches the carrier of the interface that a connection uses, according to its addresses. */
void port_sockets_watch_carrier(struct connection *c);

/* To be called when a part of a connector, or the carrier watch, has been closed. */
void port_sockets_closed(void *context);

/* Rechecks all connectors when interfaces, addresses or routes of this host have changed. */

/* Rechecks all connectors after so many milliseconds, unless a recheck is due earlier. */
void host_changes_recheck_in(struct tcp *tcp, uint64_t milliseconds);

/* Returns the functions that carrier.h calls for these connections; `closed` is the caller's. */
struct carrier_user host_changes_user(struct tcp *tcp, void (*closed)(void *context));
