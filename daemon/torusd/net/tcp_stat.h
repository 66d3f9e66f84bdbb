/* Asks the kernel about a TCP connection. This is a file of its own because <linux/tcp.h>, which has all
 * the fields, cannot be included beside <netinet/tcp.h>. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/torusd/router/io.h"

struct busy_rate;

/* Fills *stat, or leaves it unchanged if the kernel says nothing. `rate` is that of this connection (NULL: not of
 * interest), `now` is in nanoseconds. */
void tcp_stat(int fd, struct busy_rate *rate, uint64_t now, struct connection_stat *stat);
