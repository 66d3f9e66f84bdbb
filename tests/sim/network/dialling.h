/* Making connections. */
#pragma once

#include "tests/sim/network/wire.h"

/* Tells the process at the listening end of the connection. */
void dialling_accept(struct connection_end *end);

/* Implements router_io.dial(). */
void dialling_begin(void *context, unsigned port);
