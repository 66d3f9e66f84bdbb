#include "daemon/net/tcp_stat.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

void tcp_stat(int fd, struct connection_stat *stat)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info); /* an older kernel fills less of it */
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return;
    stat->rtt_us = info.tcpi_rtt;
    /* It is the largest 32-bit number before there has been any. */
    stat->min_rtt_us = info.tcpi_min_rtt < UINT32_MAX ? info.tcpi_min_rtt : 0;
    stat->acked = info.tcpi_bytes_acked;
    /* Older kernels do not say that there is no room: then it is taken for that. */
    bool full = size < offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd ||
                info.tcpi_snd_wnd == 0;
    stat->in_flight = info.tcpi_unacked > 0 && !full;
    stat->rate_bps = info.tcpi_delivery_rate * 8;
}
