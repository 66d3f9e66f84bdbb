/* Which interface packets take, as the kernel's routes say. */
#ifndef TORUSD_NET_ADDRESSES_ROUTE_H
#define TORUSD_NET_ADDRESSES_ROUTE_H

#include <sys/socket.h>

/* The index of the interface by which packets to `peer` leave; 0 with errno if there is no route.
 * `local` (may be NULL) is the address that they come from, `bound` the index of the interface that
 * their socket is bound to (0: none). */
unsigned route_interface(const struct sockaddr *peer, const struct sockaddr *local, unsigned bound);

#endif
