/* What goes out: as much as the router has, in one multi-buffer write. */
#ifndef TORUSD_NET_TCP_WRITING_H
#define TORUSD_NET_TCP_WRITING_H

#include "daemon/net/tcp/tcp_record.h"

/* Writes what there is for this connection, unless a write is under way. Returns true if there is more than is
 * written in one go. */
bool writing_flush(struct connection *c);

#endif
