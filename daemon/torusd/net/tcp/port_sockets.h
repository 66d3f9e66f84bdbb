/* The connectors of all ports: they pass new connections to the router. */
#pragma once

#include "daemon/torusd/net/tcp/tcp_record.h"

/* Makes the connectors of all ports that have a neighbour; `-` ports begin to listen. Returns 0, or -1 with
 * *e: another program listens on the address of a port, or only root may. */
int port_sockets_open(struct tcp *tcp, uint32_t rank, struct error *e);

/* As router_io.dial(). */
void port_sockets_dial(void *context, unsigned port);

/* Tells the router which dials and listeners have ended, and why. (They end in places where the router must
 * not be called.) */
void port_sockets_report(struct tcp *tcp);

/* Watches the carrier of the interface that a connection uses, according to its addresses. */
void port_sockets_watch_carrier(struct connection *c);

/* To be called when a part of a connector, or the carrier watch, has been closed. */
void port_sockets_closed(void *context);
