/* Unix sockets by their paths. */
#pragma once

/* Makes fd non-blocking and close-on-exec. */
void socket_set_nonblocking(int fd);

/* Returns a non-blocking connection; -1 with errno if there is none. EAGAIN: the listener's queue is full. Dies
 * if the path is too long. */
int socket_connect(const char *path);

/* Returns a listening socket. It appears at its path only once it accepts connections. The caller keeps the
 * string `path` until the program exits, which removes the socket. Dies if it cannot listen. */
int socket_listen(const char *path);
