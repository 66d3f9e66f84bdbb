/* Limits how many hosts the packets of a link may cross: by default none, so that a link uses its own cable
 * only. If a route leads over a third host, that host drops the packets, and the dial reports the host. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define HOPS_DEFAULT 1u
#define HOPS_MOST 255u

/* Sets the hop limit (1 to HOPS_MOST) of a socket before it connects or listens. Accepted sockets inherit
 * the limit, as do the answers to their first packet. Returns 0, or -1 with errno. */
int hops_limit(int fd, sa_family_t family, unsigned limit);

/* Makes a socket that is about to connect keep the ICMP message that makes it fail. */
void hops_keep_errors(int fd, sa_family_t family);
/* To be called when the socket is connected: from now on ICMP messages do not end the connection, as usual
 * with TCP. */
void hops_drop_errors(int fd, sa_family_t family);

/* Whether connecting failed because the packets reached their hop limit at another host. If so, writes the
 * address of that host to `host` (ADDRESS_TEXT_SIZE, address.h), or "" if it is not known. */
bool hops_exceeded(int fd, char *host, size_t size);
