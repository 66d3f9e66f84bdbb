/* Asks the kernel about a TCP connection. This is a file of its own because <linux/tcp.h>, which has all
 * the fields, cannot be included beside <netinet/tcp.h>. */
#ifndef TORUSD_NET_SOCKETS_TCP_STAT_H
#define TORUSD_NET_SOCKETS_TCP_STAT_H

#include "daemon/router/interface/io.h"

/* Fills *stat, or leaves it alone if the kernel tells nothing. */
void tcp_stat(int fd, struct connection_stat *stat);

#endif
