/* Asks the kernel's routes which interface packets take. */
#pragma once

#include <sys/socket.h>

/* Returns the index of the interface by which packets to `peer` leave; 0 with errno if there is no route.
 * `local` (may be NULL) is their source address; `bound` is the index of the interface to which their
 * socket is bound (0: none). */
unsigned route_interface(const struct sockaddr *peer, const struct sockaddr *local, unsigned bound);
