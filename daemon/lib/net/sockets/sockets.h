/* Sets up the sockets of links. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct socket_options {
    const char *congestion; /* TCP congestion control; "" = the system's */
    bool slow;              /* see pacing.h */
    unsigned hop_limit;     /* see hops.h */
};

/* Sets the options of a socket before it is bound, connects or listens; accepted sockets inherit all of them.
 * Binds the socket to `interface`, unless that is "". Returns 0, or -1 with errno if it cannot be bound to
 * the interface. */
int socket_set_up(const struct socket_options *o, int fd, sa_family_t family,
                  const char *interface);

/* Describes the errno of an attempt to use a socket in words that help. Returns `text`. */
const char *socket_failure(int error, const char *interface, char *text, size_t size);
