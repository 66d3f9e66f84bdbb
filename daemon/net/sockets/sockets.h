/* How the sockets of links are set up. */
#ifndef TORUSD_NET_SOCKETS_SOCKETS_H
#define TORUSD_NET_SOCKETS_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct socket_options {
    const char *congestion; /* TCP congestion control; "" = the system's */
    bool slow;              /* see pacing.h */
    unsigned hop_limit;     /* see hops.h */
};

/* Before a socket is bound, connects or listens; what is accepted there inherits all of it.
 * `interface` is that to which it is bound, or "". Returns 0, or -1 with errno: it cannot be bound
 * to that interface. */
int socket_set_up(const struct socket_options *o, int fd, sa_family_t family,
                  const char *interface);

/* What errno says of an attempt to use it, in words that help. */
const char *socket_failure(int error, const char *interface, char *text, size_t size);

#endif
