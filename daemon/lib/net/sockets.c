#include "daemon/lib/net/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "daemon/lib/base/log.h"
#include "proto/elapsed.h"

void reserve_fill(struct reserve *r, unsigned wanted)
{
    r->wanted = wanted < RESERVE_MOST ? wanted : RESERVE_MOST;
    while (r->held < r->wanted) {
        int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return;
        r->fd[r->held++] = fd;
    }
}

bool reserve_release_one(struct reserve *r, int error)
{
    if ((error != EMFILE && error != ENFILE) || r->held == 0)
        return false;
    (void)close(r->fd[--r->held]);
    return true;
}

/* Whether an errno means that no descriptor, or no memory for one, is free at the moment. */
static bool reserve_is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

void reserve_close(struct reserve *r)
{
    while (r->held > 0)
        (void)close(r->fd[--r->held]);
}

/* Sets the hop limit (1 to HOPS_MOST) of a socket before it connects or listens. Accepted sockets inherit
 * the limit, as do the answers to their first packet. Returns 0, or -1 with errno. */
static int hops_limit(int fd, sa_family_t family, unsigned limit)
{
    const int hops = (int)limit;

    /* An IPv6 socket may carry IPv4 (mapped addresses), whose limit is a different option. */
    if (setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof hops) != 0 && family == AF_INET)
        return -1;
    if (family == AF_INET6)
        return setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof hops);
    return 0;
}

static void set_errors(int fd, sa_family_t family, int on)
{
    (void)setsockopt(fd, IPPROTO_IP, IP_RECVERR, &on, sizeof on);
    if (family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, &on, sizeof on);
}

void hops_keep_errors(int fd, sa_family_t family)
{
    set_errors(fd, family, 1);
}

void hops_drop_errors(int fd, sa_family_t family)
{
    set_errors(fd, family, 0); /* this also drops the errors that were kept */
}

static bool is_exceeded(const struct sock_extended_err *error)
{
    return (error->ee_origin == SO_EE_ORIGIN_ICMP && error->ee_type == ICMP_TIME_EXCEEDED) ||
           (error->ee_origin == SO_EE_ORIGIN_ICMP6 && error->ee_type == ICMP6_TIME_EXCEEDED);
}

static void format_offender(const struct sock_extended_err *error, char *host, size_t size)
{
    const struct sockaddr *from = SO_EE_OFFENDER(error);
    const void *address = from->sa_family == AF_INET6
                              ? (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr
                              : (const void *)&((const struct sockaddr_in *)from)->sin_addr;

    if ((from->sa_family != AF_INET && from->sa_family != AF_INET6) ||
        inet_ntop(from->sa_family, address, host, (socklen_t)size) == NULL)
        host[0] = '\0';
}

/* Returns the kernel's record from the ancillary data of a message from the error queue. */
static const struct sock_extended_err *find_queued_error(struct msghdr *message)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c))
        if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
            (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
            return (const struct sock_extended_err *)(const void *)CMSG_DATA(c);
    return NULL;
}

bool hops_exceeded(int fd, char *host, size_t size)
{
    union {
        struct cmsghdr aligned;
        char bytes[512];
    } control;
    char packet[128];

    for (;;) {
        struct iovec to = {packet, sizeof packet};
        struct msghdr message = {.msg_iov = &to,
                                 .msg_iovlen = 1,
                                 .msg_control = control.bytes,
                                 .msg_controllen = sizeof control.bytes};
        if (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
            return false;
        const struct sock_extended_err *error = find_queued_error(&message);
        if (error == NULL || !is_exceeded(error))
            continue;
        format_offender(error, host, size);
        return true;
    }
}

/* Bytes that the kernel holds leave before any frame that is more urgent. Limiting them keeps the order of
 * departure in the daemon's hands. */
#define UNSENT_MOST (64 * 1024)

/* On links of up to SLOW_MBIT it takes milliseconds to send that much. Blocks with a longer path to go that
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

/* Limits how many bytes the kernel takes before it can send them (TCP_NOTSENT_LOWAT). */
static void pacing_limit_unsent(int fd, bool slow)
{
    int unsent = slow ? UNSENT_SLOW : UNSENT_MOST;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

static void start_pacing(struct pacing *p, int fd, double link_mbit)
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

void pacing_set_rate(struct pacing *p, int fd, double link_mbit)
{
    pacing_limit_unsent(fd, pacing_is_slow(link_mbit));
    set_pacing_rate(p, fd, false); /* the previous rate may be in force */
    *p = (struct pacing){0};
    if (pacing_is_slow(link_mbit))
        start_pacing(p, fd, link_mbit);
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

/* Happy path: readable -> accept4() until no connection waits -> accepted().
 *
 * Failure modes: if no descriptors are left, one of the reserve is released for the connection. If the
 * reserve is empty, too, the connection waits in the kernel's queue, and the listener tries again after
 * RETRY_MS; without that pause the waiting connection would wake up the loop all the time. */

#define BACKLOG 128 /* a dropped neighbour tries again after a second */
#define ACCEPTS_A_TURN 16
#define RETRY_MS 100

static void on_readable(uv_poll_t *poll, int status, int events);

static void on_retry(uv_timer_t *timer)
{
    struct listener *l = timer->data;

    (void)uv_poll_start(&l->poll, UV_READABLE, on_readable);
}

void listener_pause(struct listener *l, uint64_t milliseconds)
{
    (void)uv_poll_stop(&l->poll);
    (void)uv_timer_start(&l->retry, on_retry, milliseconds, 0);
}

static void wait_for_room(struct listener *l, int error)
{
    if (!l->no_descriptors)
        log_warning("cannot accept connections: %s; trying again", strerror(error));
    l->no_descriptors = true;
    listener_pause(l, RETRY_MS);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct listener *l = poll->data;

    (void)status, (void)events; /* accept4() finds the error */
    for (int i = 0; i < ACCEPTS_A_TURN && !l->closing && uv_is_active((uv_handle_t *)poll); i++) {
        int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            l->no_descriptors = false;
            l->accepted(l->context, fd);
        } else if (errno == EAGAIN) {
            return;
        } else if (reserve_is_shortage(errno) && !reserve_release_one(l->reserve, errno)) {
            wait_for_room(l, errno);
            return;
        } /* otherwise the connection no longer exists */
    }
}

int listener_open(struct listener *l, uv_loop_t *loop, const struct sockaddr *address,
                  socklen_t length)
{
    int type = l->type != 0 ? l->type : SOCK_STREAM, on = 1;
    int fd = socket(address->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if ((address->sa_family != AF_UNIX &&
         setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) ||
        (l->prepare != NULL && l->prepare(l->context, fd, address->sa_family) != 0) ||
        bind(fd, address, length) != 0)
        goto fail;
    if (listen(fd, BACKLOG) != 0)
        goto fail;
    int result = uv_poll_init(loop, &l->poll, fd);
    if (result != 0) {
        errno = -result;
        goto fail;
    }
    (void)uv_timer_init(loop, &l->retry);
    l->poll.data = l->retry.data = l;
    l->fd = fd;
    l->handles = 2;
    l->closing = l->no_descriptors = false;
    (void)uv_poll_start(&l->poll, UV_READABLE, on_readable);
    return 0;
fail:;
    int error = errno;
    (void)close(fd);
    errno = error;
    return -1;
}

static void on_closed(uv_handle_t *handle)
{
    struct listener *l = handle->data;

    if (--l->handles > 0)
        return;
    l->closed(l->context);
}

void listener_close(struct listener *l)
{
    l->closing = true;
    (void)uv_poll_stop(&l->poll);
    (void)close(l->fd);
    uv_close((uv_handle_t *)&l->poll, on_closed);
    uv_close((uv_handle_t *)&l->retry, on_closed);
}

int socket_set_up(const struct socket_options *o, int fd, sa_family_t family, const char *interface)
{
    int on = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pacing_limit_unsent(fd, o->slow);
    /* A socket that starts with BBR, the default of some systems, keeps BBR's pacing timer even if it is set
     * to another algorithm later. That costs a fifth more processor time per byte. */
    if (o->congestion[0] != '\0' && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->congestion,
                                               (socklen_t)strlen(o->congestion)) != 0)
        log_debug("congestion control %s is not available: %s", o->congestion, strerror(errno));
    if (hops_limit(fd, family, o->hop_limit) != 0)
        log_warning("the hop limit of links cannot be set: %s", strerror(errno));
    if (interface[0] == '\0')
        return 0;
    return setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, interface,
                      (socklen_t)(strlen(interface) + 1));
}

const char *socket_failure(int error, const char *interface, char *text, size_t size)
{
    if (error == ENODEV && interface[0] != '\0')
        (void)snprintf(text, size, "there is no interface %s", interface);
    else if (error == EPERM && interface[0] != '\0')
        (void)snprintf(text, size,
                       "sockets cannot be bound to %s: before Linux 5.7 that needs CAP_NET_RAW "
                       "(AmbientCapabilities= of systemd)",
                       interface);
    else if (error == EADDRNOTAVAIL)
        (void)snprintf(text, size, "no interface has this address%s%s (yet)",
                       interface[0] != '\0' ? " on " : "", interface);
    else
        (void)snprintf(text, size, "%s", uv_strerror(uv_translate_sys_error(error)));
    return text;
}
