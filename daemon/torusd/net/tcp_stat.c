#include "daemon/torusd/net/tcp_stat.h"

#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "daemon/torusd/router/observed.h"

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

/* The kernel's own rate (tcpi_delivery_rate) is that of a few packets, or of what the application wrote. */
static void measure_rate(struct busy_rate *rate, const struct tcp_info *info, uint64_t now)
{
    busy_rate_look(rate, now,
                   &(struct busy_look){.acked = info->tcpi_bytes_acked,
                                       .waited = info->tcpi_busy_time - info->tcpi_rwnd_limited -
                                                 info->tcpi_sndbuf_limited,
                                       .rtt = info->tcpi_rtt,
                                       .queued = info->tcpi_notsent_bytes > 0});
}

void tcp_stat(int fd, struct busy_rate *rate, uint64_t now, struct connection_stat *stat)
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
    stat->tells_room =
        size >= offsetof(struct tcp_info, tcpi_rwnd_limited) + sizeof info.tcpi_rwnd_limited;
    stat->no_room_us = info.tcpi_rwnd_limited;
    stat->in_flight = (info.tcpi_unacked > 0 || stat->unacked > 0) && !full;
    stat->segment = info.tcpi_snd_mss;
    stat->mtu = route_mtu(fd);
    stat->retransmits = info.tcpi_total_retrans;
    if (rate != NULL)
        measure_rate(rate, &info, now);
    stat->rate_bps = rate != NULL ? rate->bps : 0;
    stat->measured = rate != NULL ? rate->measured : 0;
}
