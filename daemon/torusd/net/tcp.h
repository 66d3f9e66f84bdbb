/* The settings of the links' TCP connections. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "daemon/lib/base/limits.h"
#include "daemon/lib/net/address.h"
#include "daemon/lib/schedule/torus.h"
#include "daemon/torusd/router/io.h"
#include "proto/error.h"

struct tcp_setup {
    uv_loop_t *loop;
    const struct torus *torus;
    const struct endpoint *endpoint; /* by port: dialled (+) or listened on (-); borrowed */
    const char *congestion;          /* TCP congestion control; "" = the system's */
    const double *send_mbit;         /* by port: as tcp_set_rate(); copied */
    unsigned hop_limit;              /* see sockets.h; 0: HOPS_DEFAULT */
    int io_threads;                  /* how many there are; IO_THREADS_AUTO: by the processors */
};

/* The links' TCP connections on a libuv loop: implements router/io.h. Each port has one connection:
 * `+` ports dial, `-` ports listen. Just before the loop sleeps, the router is asked for the frames to send;
 * per wake-up and port they leave in one multi-buffer write. */

struct router;
struct tcp;

/* Listens on the `-` ports that have a neighbour, or waits until that is possible. Fills *io for
 * router_new(). Returns NULL with *e if another program listens on the address of a port, or if only root
 * may listen there. tcp_close() frees it. */
struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e);

/* Sets the nominal rate at which a port sends, in Mbit/s; 0: unknown. TCP is paced at it on slow links. A connection
 * that is there follows with its next write. */
void tcp_set_rate(struct tcp *tcp, unsigned port, double send_mbit);

/* Returns the interface that the link of a port uses, or would use; "" if it is not known. Borrowed. */
const char *tcp_interface(const struct tcp *tcp, unsigned port);

/* Returns a number that changes when tcp_flush() finds an interface under another name, or a link at another one. */
unsigned tcp_moves(const struct tcp *tcp);

/* Returns what this host lacks for a port to dial or listen (an address, an interface, a name); NULL:
 * nothing. Borrowed. */
const char *tcp_missing(const struct tcp *tcp, unsigned port);

/* Gives connections to this router from now on. */
void tcp_attach(struct tcp *tcp, struct router *router);

/* Sends the frames that the router has; call it before the loop sleeps. Returns true if there are more than
 * fit into one write: the loop must not sleep. */
bool tcp_flush(struct tcp *tcp);

/* Closes all connections; those that still carry a last message linger for a second at most. `tcp` is freed
 * when the loop has closed its last handle. */
void tcp_close(struct tcp *tcp);
