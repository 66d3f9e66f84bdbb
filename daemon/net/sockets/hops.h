/* How many hosts the packets of a link may cross: by default none, so that a link is the cable that
 * it stands for. A route that leads over a third host ends there, and the dial says so. */
#ifndef TORUSD_NET_SOCKETS_HOPS_H
#define TORUSD_NET_SOCKETS_HOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define HOPS_DEFAULT 1u
#define HOPS_MOST 255u

/* Sets the hop limit (1 to HOPS_MOST) of a socket before it connects or listens; what is accepted
 * from it inherits the limit, as its answers to the first packet do. Returns 0, or -1 with errno. */
int hops_limit(int fd, sa_family_t family, unsigned limit);

/* Lets a socket that is about to connect keep the ICMP message that makes it fail. */
void hops_keep_errors(int fd, sa_family_t family);
/* It is connected: from now on ICMP messages do not end it, as is usual for TCP. */
void hops_drop_errors(int fd, sa_family_t family);

/* Whether it was refused because its packets reached their hop limit at another host, whose
 * address is then written to `host` (ADDRESS_TEXT_SIZE, address.h), or "" if it is not known. */
bool hops_exceeded(int fd, char *host, size_t size);

#endif
