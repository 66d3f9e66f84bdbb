#include "daemon/lib/net/sockets/hops.h"

#include <arpa/inet.h>
#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <string.h>

int hops_limit(int fd, sa_family_t family, unsigned limit)
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
