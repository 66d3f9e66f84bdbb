/* Where connections come from: the doors of all ports, and what is made of what comes through them. */
#ifndef TORUSD_NET_TCP_PORT_SOCKETS_H
#define TORUSD_NET_TCP_PORT_SOCKETS_H

#include "daemon/net/tcp/tcp_record.h"

/* Opens the doors of the ports that have a neighbour: `-` ports listen. Returns 0, or -1 with *e: there is another
 * program that listens on the address of one, or only root may. */
int port_sockets_open_doors(struct tcp *tcp, uint32_t rank, struct error *e);

/* As router_io.dial(). */
void port_sockets_dial(void *context, unsigned port);

/* Tells the router what has become of dials and listeners: it was not to be called when that was found out. */
void port_sockets_tell_doors(struct tcp *tcp);

/* The ends of a connection decide which interface's carrier is the link's. */
void port_sockets_watch_carrier(struct connection *c);

/* A part of a door, or what watches carriers, is closed. */
void port_sockets_closed(void *context);

#endif
