#include "daemon/torus-routed/kernel/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "daemon/torus-routed/kernel/netlink_internal.h"

#define ANSWER_SIZE 32768u
#define ANSWER_SECONDS 5

int netlink_open(struct netlink *nl)
{
    return netlink_open_for(nl, NETLINK_ROUTE);
}

int netlink_open_for(struct netlink *nl, int protocol)
{
    const struct timeval patience = {.tv_sec = ANSWER_SECONDS};

    *nl = (struct netlink){.socket = mnl_socket_open2(protocol, SOCK_CLOEXEC)};
    if (nl->socket == NULL || mnl_socket_bind(nl->socket, 0, MNL_SOCKET_AUTOPID) < 0)
        return -1;
    nl->port = mnl_socket_get_portid(nl->socket);
    return setsockopt(mnl_socket_get_fd(nl->socket), SOL_SOCKET, SO_RCVTIMEO, &patience,
                      sizeof patience);
}

void netlink_close(struct netlink *nl)
{
    if (nl->socket != NULL)
        (void)mnl_socket_close(nl->socket);
    nl->socket = NULL;
}

struct nlmsghdr *netlink_begin(char buffer[NETLINK_REQUEST_SIZE], uint16_t type, uint16_t flags)
{
    struct nlmsghdr *request;

    memset(buffer, 0, NETLINK_REQUEST_SIZE); /* libmnl leaves gaps between attributes as they are */
    request = mnl_nlmsg_put_header(buffer);
    request->nlmsg_type = type;
    request->nlmsg_flags = NLM_F_REQUEST | flags;
    return request;
}

/* Whether it is the answer to a request that was given up. mnl_cb_run() says ESRCH then, as the kernel does if a route
 * does not exist. */
static bool is_late(const char *answer, size_t length, unsigned sequence)
{
    struct nlmsghdr head;

    if (length < sizeof head)
        return true;
    memcpy(&head, answer, sizeof head);
    return head.nlmsg_seq != sequence;
}

int netlink_ask(struct netlink *nl, struct nlmsghdr *request, mnl_cb_t each, void *context)
{
    static char answer[ANSWER_SIZE];
    int result = MNL_CB_OK;

    request->nlmsg_seq = ++nl->sequence;
    if ((request->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
        request->nlmsg_flags |= NLM_F_ACK;
    if (mnl_socket_sendto(nl->socket, request, request->nlmsg_len) < 0)
        return -1;
    while (result > MNL_CB_STOP) {
        ssize_t length = mnl_socket_recvfrom(nl->socket, answer, sizeof answer);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return -1;
        if (is_late(answer, (size_t)length, nl->sequence))
            continue;
        result = mnl_cb_run(answer, (size_t)length, nl->sequence, nl->port, each, context);
    }
    return result < 0 ? -1 : 0;
}

/* Returns the last attribute of this type between these ends, or NULL. */
static const struct nlattr *find(const struct nlattr *at, const char *end, unsigned type)
{
    const struct nlattr *found = NULL;

    for (; mnl_attr_ok(at, (int)(end - (const char *)at)); at = mnl_attr_next(at))
        if (mnl_attr_get_type(at) == type)
            found = at;
    return found;
}

const struct nlattr *netlink_attribute(const struct nlmsghdr *message, size_t size, unsigned type)
{
    return find(mnl_nlmsg_get_payload_offset(message, size), mnl_nlmsg_get_payload_tail(message),
                type);
}

const struct nlattr *netlink_nested(const struct nlattr *nest, unsigned type)
{
    const char *begin = mnl_attr_get_payload(nest);

    return find((const struct nlattr *)begin, begin + mnl_attr_get_payload_len(nest), type);
}

size_t ip_length(const struct ip *ip)
{
    return ip->family == AF_INET ? sizeof ip->v4 : sizeof ip->v6;
}

bool ip_equal(const struct ip *a, const struct ip *b)
{
    return a->family == b->family && (a->family == 0 || memcmp(&a->v6, &b->v6, ip_length(a)) == 0);
}

void ip_take(struct ip *ip, int family, const struct nlattr *attribute)
{
    *ip = (struct ip){.family = family};
    if (mnl_attr_get_payload_len(attribute) >= ip_length(ip))
        memcpy(&ip->v6, mnl_attr_get_payload(attribute), ip_length(ip));
}
