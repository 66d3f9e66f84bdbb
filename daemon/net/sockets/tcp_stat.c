#include "daemon/net/sockets/tcp_stat.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Returns how many bytes were written and not acknowledged, including bytes that the interface itself has
 * dropped, which the kernel does not count as sent. */
static uint64_t unacked_bytes(int fd)
{
    int bytes = 0;

    return ioctl(fd, SIOCOUTQ, &bytes) == 0 && bytes > 0 ? (uint64_t)bytes : 0;
}

/* Linux also answers this for IPv6. */
static uint32_t route_mtu(int fd)
{
    int mtu = 0;
    socklen_t size = sizeof mtu;

    return getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &size) == 0 && mtu > 0 ? (uint32_t)mtu : 0;
}

void tcp_stat(int fd, struct connection_stat *stat)
{
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info); /* an older kernel fills only a part */
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return;
    stat->rtt_us = info.tcpi_rtt;
    /* The kernel gives the largest 32-bit number before it has measured a round trip. */
    stat->min_rtt_us = info.tcpi_min_rtt < UINT32_MAX ? info.tcpi_min_rtt : 0;
    stat->acked = info.tcpi_bytes_acked;
    /* Older kernels do not tell whether the peer has room: then the peer counts as full. */
    bool full = size < offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd ||
                info.tcpi_snd_wnd == 0;
    stat->unacked = unacked_bytes(fd);
    stat->in_flight = (info.tcpi_unacked > 0 || stat->unacked > 0) && !full;
    stat->segment = info.tcpi_snd_mss;
    stat->mtu = route_mtu(fd);
    stat->retransmits = info.tcpi_total_retrans;
    stat->rate_bps = info.tcpi_delivery_rate * 8;
}
