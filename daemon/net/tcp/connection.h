/* The life of a connection: it is freed when its handles are closed, and never before. */
#ifndef TORUSD_NET_TCP_CONNECTION_H
#define TORUSD_NET_TCP_CONNECTION_H

#include "daemon/net/tcp/tcp_record.h"

/* A connection of `port`, whose descriptor it takes over. Returns NULL, with that closed, if there is no memory. */
struct connection *connection_new(struct tcp *tcp, unsigned port, int fd);

/* It is gone, for this reason: its link is told. */
void connection_broken(struct connection *c, const char *reason);

/* Closes its handles; it is freed when the loop has closed them. */
void connection_close_handles(struct connection *c);

/* The same at once, with a reset: what has not been acknowledged is given up. Returns false if that cannot be. */
bool connection_reset(struct connection *c);

/* It has something to send: to be looked at by the next tcp_flush(). */
void connection_mark_dirty(struct connection *c);

/* Something of `tcp` has been closed: the last one frees it. */
void tcp_release(struct tcp *tcp);

#endif
