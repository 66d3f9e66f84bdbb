/* Reads into the router's memory, through the cipher where links are encrypted. */
#pragma once

#include "daemon/torusd/net/tcp/tcp_record.h"

/* Starts to read. Returns 0, or -1 if libuv cannot. */
int reading_start(struct connection *c);

/* Reads again if the router wants to. */
void reading_resume(struct connection *c);
