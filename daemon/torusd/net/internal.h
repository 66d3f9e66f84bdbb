/* The records of the links' TCP connections. */
#pragma once

#include <uv.h>

#include <net/if.h>

#include "daemon/lib/net/carrier.h"
#include "daemon/lib/net/sockets.h"
#include "daemon/torusd/net/connector.h"
#include "daemon/torusd/net/io_threads.h"
#include "daemon/torusd/net/pipes.h"
#include "daemon/torusd/net/tcp.h"
#include "daemon/torusd/net/tcp_stat.h"
#include "daemon/torusd/router/observed.h"
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
    bool reading;          /* libuv reads */
    bool held;             /* reading is stopped for now */
    bool proved;           /* it belongs to the neighbour: it is paced */
    unsigned rate_changes; /* of its port, which the pacing knows */
    struct pacing pacing;
    struct busy_rate rate;
    struct cipher *cipher; /* NULL: not encrypted, or not yet */
    bool sealed;           /* the bytes that are being written are in the cipher */
    struct pipe *pipe;     /* of the body that is arriving; NULL: it goes to slabs */
    bool moved;            /* what has arrived was moved (bodies_move()): nothing is read */
    bool piped;            /* bytes of the batch are in pipes */
    char *spill;           /* bytes of a pipe for which the socket had no room; NULL: none so far */
    struct outgoing_queue batch; /* being written; encrypted bytes are in the cipher instead */
    uv_buf_t *rest; /* of the batch, which is written after this packet of the kernel; NULL: none */
    unsigned rest_count;
    struct outgoing *last; /* to be written before the connection closes */
    struct io_job in, out; /* what an I/O thread reads or writes, instead of libuv */
    bool by_thread;        /* an I/O thread reads, not libuv */
    bool filled;           /* the last read got enough bytes that more may be there */
};

struct tcp {
    struct tcp_setup set;
    struct router *router;
    struct port_rate {
        double mbit;                   /* nominal rate at which it sends; 0: unknown */
        unsigned changes;              /* how often that has changed */
        struct socket_options options; /* of the sockets of the port */
    } rate[TORUS_MAX_PORTS];
    struct connector_user user;
    uv_timer_t recheck; /* when to recheck all connectors */
    struct reserve reserve;
    struct carrier *carrier; /* NULL: interfaces cannot be watched */
    struct speeds {          /* what network cards have negotiated: read off the loop */
        uv_work_t work;
        bool due, running;
        char interface[TORUS_MAX_PORTS][IFNAMSIZ];
        uint32_t mbit[TORUS_MAX_PORTS];
    } speeds;
    struct pipes pipes;
    struct io_threads *threads;
    struct connection *dirty;
    unsigned handles; /* not closed yet: parts of connectors, connections, the rest */
    unsigned lingering;
    bool closing;
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

/* Whether the link of a connection is slow: see pacing_is_slow(). */
static inline bool connection_is_slow(const struct connection *c)
{
    return c->tcp->rate[c->port].options.slow;
}

/* Returns the most bytes of a packet of the kernel: a slow link passes it as a whole. */
size_t connection_packet(const struct connection *c);

/* Marks a connection that has something to send, for the next tcp_flush(). */
void connection_mark_dirty(struct connection *c);

/* To be called when a handle of `tcp` has been closed; the last call frees `tcp`. */
void tcp_release(struct tcp *tcp);

/* Bodies that are not read into slabs. */

/* Moves bytes that have arrived into a pipe or into the memory of a program, if they belong there. Returns whether it has
 * moved any; the link may be gone then. */
bool bodies_move(struct connection *c);
/* The rest of the body that is arriving goes to slabs. */
void bodies_drop_pipe(struct connection *c);

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

/* The connectors of all ports: they pass new connections to the router. */

/* Rechecks all connectors when interfaces, addresses or routes of this host have changed. */
