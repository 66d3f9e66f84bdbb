#include "daemon/lib/net/sockets/pacing.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "proto/elapsed.h"

/* Bytes that the kernel holds leave before any frame that is more urgent. Limiting them keeps the order of
 * departure in the daemon's hands. */
#define UNSENT_MOST (64 * 1024)

/* On links of up to SLOW_MBIT it takes milliseconds to send that much. Blocks with a longer way to go that
 * arrive during this time cannot overtake; so the kernel holds less there. (8x8 at 10 Mbit/s, blocks of 16
 * KiB streaming after a pause: 1.4 times the bound with 64 KiB, 1.01 with 16.)
 *
 * Such links are paced at the rate at which they carry payload, so that TCP queues hardly anything in the
 * device. Otherwise TCP queues hundreds of packets in the device, and the other direction's acknowledgements
 * wait behind them: with a round trip of 0.3 s a window that is small, after a loss or at the start, stays
 * small for seconds. (4x4 at 50 Mbit/s, 64 KiB, first exchange of new connections: 91 ms paced, 127 not.) If
 * they were paced at the nominal rate, of which headers take a part, the device would still queue two packets
 * of 64 KiB, and a message that a link is down would wait behind them. (4x4 at 50 Mbit/s, while blocks
 * stream: round trips of 28 ms, and below 1 ms at the rate of payload, with the same times.) The first
 * PACED_FROM bytes after a pause are not paced, because the link may pass them at once.
 *
 * A relay can use a packet of the kernel (up to 64 KiB) only when the whole packet has arrived; so a frame
 * that will be relayed gets its own packet. (at2 in steps, 64 KiB on 4x4 at 50 Mbit/s, paced: 89 ms, and 112
 * in common packets.) */
#define SLOW_MBIT 500.0
#define UNSENT_SLOW (16 * 1024)
#define PACED_FROM (24u * 1024u)

/* Bytes of headers in a packet. They count on emulated links with limited rates; the 24 bytes between
 * frames of Ethernet, which real cables need, do not. */
#define HEADERS_ETHERNET 14u
#define HEADERS_TCP (20u + 12u) /* with timestamps */
#define HEADERS_IPV4 20u
#define HEADERS_IPV6 40u
#define SEGMENT_LEAST 500u

bool pacing_is_slow(double link_mbit)
{
    return link_mbit > 0 && link_mbit <= SLOW_MBIT;
}

void pacing_limit_unsent(int fd, bool slow)
{
    int unsent = slow ? UNSENT_SLOW : UNSENT_MOST;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

void pacing_start(struct pacing *p, int fd, double link_mbit)
{
    struct sockaddr_storage own;
    socklen_t own_length = sizeof own, length = sizeof(int);
    int segment = 0;
    unsigned headers = HEADERS_ETHERNET + HEADERS_TCP + HEADERS_IPV4;

    *p = (struct pacing){.bytes_per_second = link_mbit * 1e6 / 8};
    if (getsockname(fd, (struct sockaddr *)&own, &own_length) == 0 && own.ss_family == AF_INET6)
        headers += HEADERS_IPV6 - HEADERS_IPV4;
    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &segment, &length) == 0 &&
        segment >= (int)SEGMENT_LEAST)
        p->bytes_per_second *= segment / (double)(segment + (int)headers);
}

static void set_pacing_rate(struct pacing *p, int fd, bool paced)
{
    uint32_t bytes_per_second = paced ? (uint32_t)p->bytes_per_second : UINT32_MAX;

    if (p->paced == paced)
        return;
    p->paced = paced;
    (void)setsockopt(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &bytes_per_second,
                     sizeof bytes_per_second);
}

void pacing_before_write(struct pacing *p, int fd, size_t bytes, uint64_t now_ms)
{
    double rest = p->ahead - (double)elapsed(p->ahead_since_ms, now_ms) * p->bytes_per_second / 1e3;

    p->ahead = (rest > 0 ? rest : 0) + (double)bytes;
    p->ahead_since_ms = now_ms;
    if (p->ahead > PACED_FROM)
        set_pacing_rate(p, fd, true);
    else if (rest <= 0)
        set_pacing_rate(p, fd, false);
}
