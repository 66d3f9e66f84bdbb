#include "daemon/lib/net/addresses/route.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

struct question {
    struct nlmsghdr head;
    struct rtmsg route;
    uint8_t attributes[128];
};

static void put_attribute(struct question *q, unsigned short type, const void *value, size_t size)
{
    struct rtattr *attribute =
        (struct rtattr *)(void *)((uint8_t *)q + NLMSG_ALIGN(q->head.nlmsg_len));

    attribute->rta_type = type;
    attribute->rta_len = (unsigned short)RTA_LENGTH(size);
    memcpy(RTA_DATA(attribute), value, size);
    q->head.nlmsg_len = (uint32_t)(NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(attribute->rta_len));
}

/* Returns the bytes of an address and their number; for an IPv4 address that is mapped into IPv6, those of
 * the IPv4 address. */
static const void *address_bytes(const struct sockaddr *address, sa_family_t *family, uint8_t *size)
{
    const struct in6_addr *in6 = &((const struct sockaddr_in6 *)address)->sin6_addr;

    *family = AF_INET;
    *size = sizeof(struct in_addr);
    if (address->sa_family == AF_INET)
        return &((const struct sockaddr_in *)address)->sin_addr;
    if (IN6_IS_ADDR_V4MAPPED(in6))
        return &in6->s6_addr[12];
    *family = AF_INET6;
    *size = sizeof *in6;
    return in6;
}

static bool is_any(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}

static void fill_query(struct question *q, const struct sockaddr *peer,
                       const struct sockaddr *local, unsigned bound)
{
    sa_family_t family, local_family;
    uint8_t size, local_size;
    const void *bytes = address_bytes(peer, &family, &size);

    *q = (struct question){
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof q->route),
                 .nlmsg_type = RTM_GETROUTE,
                 .nlmsg_flags = NLM_F_REQUEST},
        .route = {.rtm_family = (unsigned char)family, .rtm_dst_len = (unsigned char)(size * 8)}};
    put_attribute(q, RTA_DST, bytes, size);
    if (local != NULL && (local->sa_family == AF_INET || local->sa_family == AF_INET6)) {
        bytes = address_bytes(local, &local_family, &local_size);
        if (local_family == family && !is_any(bytes, size)) {
            q->route.rtm_src_len = q->route.rtm_dst_len;
            put_attribute(q, RTA_SRC, bytes, size);
        }
    }
    if (bound == 0 && family == AF_INET6)
        bound = ((const struct sockaddr_in6 *)peer)->sin6_scope_id;
    if (bound != 0)
        put_attribute(q, RTA_OIF, &bound, sizeof bound);
}

static unsigned read_answer(struct nlmsghdr *head, size_t length)
{
    unsigned index = 0;

    errno = EPROTO;
    if (!NLMSG_OK(head, length))
        return 0;
    if (head->nlmsg_type == NLMSG_ERROR) {
        errno = -((const struct nlmsgerr *)NLMSG_DATA(head))->error;
        return 0;
    }
    const struct rtmsg *route = NLMSG_DATA(head);
    size_t left = RTM_PAYLOAD(head);
    if (head->nlmsg_type != RTM_NEWROUTE)
        return 0;
    errno = ENETUNREACH;
    if (route->rtm_type != RTN_UNICAST && route->rtm_type != RTN_LOCAL)
        return 0;
    for (const uint8_t *at = (const uint8_t *)RTM_RTA(route); left >= sizeof(struct rtattr);) {
        const struct rtattr *a = (const struct rtattr *)(const void *)at;
        const size_t step = RTA_ALIGN(a->rta_len);
        if (a->rta_len < sizeof *a || a->rta_len > left)
            break;
        if (a->rta_type == RTA_OIF && a->rta_len >= RTA_LENGTH(sizeof index))
            memcpy(&index, RTA_DATA(a), sizeof index);
        at += step;
        left -= step < left ? step : left;
    }
    return index;
}

unsigned route_interface(const struct sockaddr *peer, const struct sockaddr *local, unsigned bound)
{
    union {
        struct nlmsghdr head;
        uint8_t bytes[4096];
    } answer;
    struct question q;
    unsigned index = 0;
    ssize_t length;
    int fd, error;

    if (peer->sa_family != AF_INET && peer->sa_family != AF_INET6) {
        errno = EAFNOSUPPORT;
        return 0;
    }
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0)
        return 0;
    fill_query(&q, peer, local, bound);
    /* The kernel answers before send() returns. */
    if (send(fd, &q, q.head.nlmsg_len, 0) >= 0 &&
        (length = recv(fd, answer.bytes, sizeof answer.bytes, 0)) >= 0)
        index = read_answer(&answer.head, (size_t)length);
    error = errno;
    (void)close(fd);
    errno = error;
    return index;
}
