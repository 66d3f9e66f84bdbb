/* The sockets of daemons: their paths, and connecting to them. */
#ifndef TORUSD_CLIENT_SOCKET_H
#define TORUSD_CLIENT_SOCKET_H

#include <torus/torus.h>

/* The path of a socket: `path` with the host's name for each "%h", followed by `suffix`. Returns
 * a text that the caller frees, or NULL if there is no memory. */
char *socket_path(const char *path, const char *suffix);

/* Connects a socket of this type (SOCK_STREAM...). Returns the socket, which the caller closes,
 * or -1 with *e. */
int socket_connect(const char *path, int type, struct torus_error *e);

#endif
