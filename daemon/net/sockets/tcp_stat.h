/* What the kernel knows about a TCP connection. A file of its own: <linux/tcp.h>, which has all the
 * fields, cannot be included beside <netinet/tcp.h>. */
#ifndef TORUSD_NET_SOCKETS_TCP_STAT_H
#define TORUSD_NET_SOCKETS_TCP_STAT_H

#include "daemon/router/interface/io.h"

/* Leaves *stat alone if nothing is known. */
void tcp_stat(int fd, struct connection_stat *stat);

#endif
