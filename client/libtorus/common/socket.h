/* The sockets of daemons: their paths, and connecting to them. */
#pragma once

#include <torus/torus.h>

/* Returns `path` with each "%h" replaced by the host's name, followed by `suffix`. The caller frees the text. NULL:
 * out of memory. */
char *socket_path(const char *path, const char *suffix);

/* Connects a new socket of this type (SOCK_STREAM...) to `path`. Returns the socket, which the caller closes, or -1
 * with *e. */
int socket_connect(const char *path, int type, struct torus_error *e);
