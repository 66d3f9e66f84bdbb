/* Writes the frames of the router, as many as it has in one multi-buffer write. */
#pragma once

#include "daemon/torusd/net/tcp/tcp_record.h"

/* Writes the frames for this connection, unless a write is under way. Returns true if there are more than
 * fit into one write. */
bool writing_flush(struct connection *c);
