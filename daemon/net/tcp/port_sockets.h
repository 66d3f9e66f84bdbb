/* The doors of all ports, and what happens to the connections that come through them. */
#ifndef TORUSD_NET_TCP_PORT_SOCKETS_H
#define TORUSD_NET_TCP_PORT_SOCKETS_H

#include "daemon/net/tcp/tcp_record.h"

/* Opens the doors of the ports that have a neighbour: `-` ports listen. Returns 0, or -1 with *e: another
 * program listens on the address of a port, or only root may. */
int port_sockets_open_doors(struct tcp *tcp, uint32_t rank, struct error *e);

/* As router_io.dial(). */
void port_sockets_dial(void *context, unsigned port);

/* Tells the router how dials and listening have ended. They end where the router must not be called. */
void port_sockets_tell_doors(struct tcp *tcp);

/* Watches the carrier of the interface that a connection uses, as its ends say. */
void port_sockets_watch_carrier(struct connection *c);

/* To be called when a part of a door, or the carrier watch, has been closed. */
void port_sockets_closed(void *context);

#endif
