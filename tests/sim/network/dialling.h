/* Connections are made. */
#ifndef TORUSD_TESTS_SIM_NETWORK_DIALLING_H
#define TORUSD_TESTS_SIM_NETWORK_DIALLING_H

#include "tests/sim/network/wire.h"

/* The process at the listening end hears of the connection. */
void dialling_accept(struct connection_end *end);

/* As router_io.dial(). */
void dialling_begin(void *context, unsigned port);

#endif
