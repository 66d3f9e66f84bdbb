/* Unix sockets by their paths. */
#ifndef TORUSD_TOPO_GUEST_BRIDGE_SOCKETS_H
#define TORUSD_TOPO_GUEST_BRIDGE_SOCKETS_H

/* Neither blocks nor is inherited. */
void socket_set_nonblocking(int fd);

/* The connection, which does not block; -1 where nobody can be reached; errno EAGAIN: not yet. */
int socket_connect(const char *path);

/* The listening socket, which only appears at its path once it accepts connections. The path is the
 * caller's and must stay: the socket is removed when the program exits. Dies if it cannot listen. */
int socket_listen(const char *path);

#endif
