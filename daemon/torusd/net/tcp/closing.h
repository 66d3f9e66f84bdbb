/* Connections that the router has closed linger until the peer has read the last message. */
#pragma once

#include "daemon/torusd/net/tcp/tcp_record.h"

/* As router_io.close(). */
void closing_begin(void *context, void *connection, struct outgoing *last);

/* Writes the last message. To be called when everything else has been written. */
void closing_say_last(struct connection *c);
