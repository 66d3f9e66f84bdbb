/* Asks the kernel about a TCP connection. This is a file of its own because <linux/tcp.h>, which has all
 * the fields, cannot be included beside <netinet/tcp.h>. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/torusd/router/io.h"

/* How fast a connection sends while data waits for the network, measured from one tcp_stat() to a later one. Begins as
 * zeros. */
struct tcp_rate {
    uint64_t bps;      /* bits per second, the last time that data always waited; 0 = unknown */
    uint64_t at;       /* when it was last looked at, in nanoseconds; 0 = never */
    uint64_t acked;    /* bytes that had been acknowledged then */
    uint64_t waited;   /* microseconds that data had waited for the network until then */
    bool queued;       /* the network did not take all data then */
    uint32_t measured; /* how often `bps` has been set */
};

/* Fills *stat, or leaves it alone if the kernel tells nothing. `rate`: of this connection, NULL: its rate is not of
 * interest; now: nanoseconds. */
void tcp_stat(int fd, struct tcp_rate *rate, uint64_t now, struct connection_stat *stat);
