/* The sockets of daemons: where they are, and how they are reached. */
#ifndef TORUSD_CLIENT_SOCKET_H
#define TORUSD_CLIENT_SOCKET_H

#include <torus/torus.h>

/* Where a socket is: `path` with the host's name for each "%h", and `suffix` behind it. Returns what
 * the caller frees, or NULL if there is no memory. */
char *socket_path(const char *path, const char *suffix);

/* Connects a socket of that type (SOCK_STREAM...). Returns it, or -1 with *e. */
int socket_connect(const char *path, int type, struct torus_error *e);

#endif
