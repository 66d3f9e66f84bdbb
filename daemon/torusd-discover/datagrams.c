#include "daemon/torusd-discover/datagrams.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define READ_MOST 64  /* datagrams that are read at a time */
#define HOP_LIMIT 255 /* a datagram that a router has passed on has less */
#define RECEIVE_BUFFER (1 << 20)

_Static_assert(sizeof(struct in6_addr) == DISCOVERY_ADDRESS_SIZE, "an IPv6 address");

static const struct in6_addr all_nodes = {{{0xff, 2, [15] = 1}}};

/* Finds the interface, the hop limit and the destination of a datagram. */
static unsigned read_control(struct msghdr *message, int *hops, struct in6_addr *to)
{
    unsigned interface = 0;

    *hops = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != IPPROTO_IPV6)
            continue;
        if (c->cmsg_type == IPV6_PKTINFO) {
            struct in6_pktinfo info;
            memcpy(&info, CMSG_DATA(c), sizeof info);
            interface = info.ipi6_ifindex;
            *to = info.ipi6_addr;
        } else if (c->cmsg_type == IPV6_HOPLIMIT) {
            memcpy(hops, CMSG_DATA(c), sizeof *hops);
        }
    }
    return interface;
}

/* Reads one datagram. Returns false if there is none. */
static bool read_one(struct datagrams *d)
{
    _Alignas(struct cmsghdr) char control[256];
    struct sockaddr_in6 source = {0};
    struct iovec io = {d->buffer, sizeof d->buffer};
    struct msghdr message = {.msg_name = &source,
                             .msg_namelen = sizeof source,
                             .msg_iov = &io,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    ssize_t size = recvmsg(d->fd, &message, MSG_DONTWAIT);
    struct discovery_address from;
    struct in6_addr to = {0};
    unsigned interface;
    int hops;

    if (size < 0)
        return errno == EINTR || errno == ECONNREFUSED;
    interface = read_control(&message, &hops, &to);
    if (interface == 0 || hops != HOP_LIMIT || (message.msg_flags & MSG_TRUNC) != 0 ||
        !IN6_IS_ADDR_LINKLOCAL(&source.sin6_addr) ||
        (!IN6_IS_ADDR_LINKLOCAL(&to) && !IN6_ARE_ADDR_EQUAL(&to, &all_nodes)) ||
        ntohs(source.sin6_port) != DISCOVERY_PORT)
        return true;
    memcpy(from.bytes, &source.sin6_addr, sizeof from.bytes);
    d->received(d->context, interface, &from, d->buffer, (size_t)size);
    return true;
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct datagrams *d = poll->data;

    (void)status, (void)events;
    for (int i = 0; i < READ_MOST && read_one(d); i++)
        continue;
}

static int set_options(int fd)
{
    const int on = 1, off = 0, hops = HOP_LIMIT, buffer = RECEIVE_BUFFER;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof on) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, &off, sizeof off) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof hops) != 0 ||
        setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof hops) != 0)
        return -1;
    return 0;
}

int datagrams_open(struct datagrams *d, uv_loop_t *loop, struct error *e)
{
    /* Without SO_REUSEADDR, so that there is only one discovery process on a host. */
    const struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(DISCOVERY_PORT)};
    int error = 0;

    d->fd = socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (d->fd < 0)
        return error_set(e, ERROR_IO, "no socket for discovery: %s", strerror(errno));
    if (set_options(d->fd) != 0 || bind(d->fd, (const struct sockaddr *)&any, sizeof any) != 0)
        error = errno;
    else
        error = -uv_poll_init(loop, &d->poll, d->fd);
    if (error == 0) {
        d->poll.data = d;
        (void)uv_poll_start(&d->poll, UV_READABLE, on_readable);
        return 0;
    }
    (void)close(d->fd);
    if (error == EADDRINUSE)
        return error_set(e, ERROR_REFUSED,
                         "another discovery process runs on this host (UDP port %u is in use)",
                         DISCOVERY_PORT);
    return error_set(e, ERROR_IO, "UDP port %u cannot be used for discovery: %s", DISCOVERY_PORT,
                     strerror(error));
}

static void on_closed(uv_handle_t *handle)
{
    struct datagrams *d = handle->data;

    (void)close(d->fd);
    d->closed(d->context);
}

void datagrams_close(struct datagrams *d)
{
    (void)uv_poll_stop(&d->poll);
    uv_close((uv_handle_t *)&d->poll, on_closed);
}

void datagrams_send(struct datagrams *d, unsigned interface, const struct discovery_address *to,
                    const uint8_t *bytes, size_t size)
{
    struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                   .sin6_port = htons(DISCOVERY_PORT),
                                   .sin6_addr = all_nodes,
                                   .sin6_scope_id = interface};

    if (to != NULL)
        memcpy(&address.sin6_addr, to->bytes, sizeof to->bytes);
    (void)sendto(d->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&address,
                 sizeof address);
}
