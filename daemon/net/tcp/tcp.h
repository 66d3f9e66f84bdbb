/* The links' TCP connections on a libuv loop: implements router/interface/io.h. One connection a port: `+`
 * ports dial, `-` ports listen. What is to be sent is asked of the router just before the loop
 * goes to sleep, and leaves in one multi-buffer write a port and wake-up. */
#ifndef TORUSD_NET_TCP_TCP_H
#define TORUSD_NET_TCP_TCP_H

#include <stdbool.h>

#include "daemon/net/tcp/setup.h"
#include "daemon/router/interface/io.h"
#include "proto/error.h"

struct router;
struct tcp;

/* Listens on the `-` ports that have a neighbour, or waits until that is possible. Returns NULL with
 * *e if another program listens on the address of one, or if only root may listen there. The functions
 * of *io are filled in, for router_new(). */
struct tcp *tcp_new(const struct tcp_setup *setup, uint32_t rank, struct router_io *io,
                    struct error *e);

/* The interface that the link of a port uses, or would use; "" if it is not known. */
const char *tcp_interface(const struct tcp *tcp, unsigned port);

/* What this host lacks for a port to dial or listen (an address, an interface, a name); NULL: nothing. */
const char *tcp_missing(const struct tcp *tcp, unsigned port);

/* Connections go to this router from now on. */
void tcp_attach(struct tcp *tcp, struct router *router);

/* Sends what there is to send; call it before the loop sleeps. Returns true if there is more than
 * was sent in one go: the loop must not sleep. */
bool tcp_flush(struct tcp *tcp);

/* Closes everything; connections that still carry a last message linger for a second at most.
 * Freed when the loop has closed the last handle. */
void tcp_close(struct tcp *tcp);

#endif
