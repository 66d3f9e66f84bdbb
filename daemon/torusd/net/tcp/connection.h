/* The life of a connection: it is freed only when all its handles are closed. */
#pragma once

#include "daemon/torusd/net/tcp/tcp_record.h"

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
