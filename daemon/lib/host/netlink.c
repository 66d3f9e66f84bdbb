#include "daemon/lib/host/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_SIZE 32768u
#define ANSWER_SECONDS 5

int netlink_open(struct netlink *nl, int protocol)
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
static bool is_late(const struct nlmsghdr *answer, size_t length, unsigned sequence)
{
    return length < sizeof *answer || answer->nlmsg_seq != sequence;
}

struct callback {
    size_t head;
    mnl_cb_t each;
    void *context;
};

static int on_message(const struct nlmsghdr *message, void *context)
{
    const struct callback *a = context;

    if (mnl_nlmsg_get_payload_len(message) >= a->head)
        return a->each(message, a->context);
    errno = EPROTO;
    return MNL_CB_ERROR;
}

int netlink_ask(struct netlink *nl, struct nlmsghdr *request, size_t head, mnl_cb_t each,
                void *context)
{
    struct callback callback = {head, each, context};
    union {
        struct nlmsghdr head;
        char bytes[ANSWER_SIZE];
    } answer;
    int result = MNL_CB_OK;

    nl->refused = false;
    request->nlmsg_seq = ++nl->sequence;
    if ((request->nlmsg_flags & NLM_F_DUMP) != NLM_F_DUMP)
        request->nlmsg_flags |= NLM_F_ACK;
    if (mnl_socket_sendto(nl->socket, request, request->nlmsg_len) < 0)
        return -1;
    while (result > MNL_CB_STOP) {
        const ssize_t length = mnl_socket_recvfrom(nl->socket, &answer, sizeof answer);
        if (length < 0 && errno == EINTR)
            continue;
        if (length < 0)
            return -1;
        if (is_late(&answer.head, (size_t)length, nl->sequence))
            continue;
        result = mnl_cb_run(&answer, (size_t)length, nl->sequence, nl->port,
                            each != NULL ? on_message : NULL, &callback);
        nl->refused = result < 0 && answer.head.nlmsg_type == NLMSG_ERROR;
    }
    return result < 0 ? -1 : 0;
}

int netlink_do(struct netlink *nl, struct nlmsghdr *request)
{
    return netlink_ask(nl, request, 0, NULL, NULL);
}

int netlink_list(uint16_t type, int family, size_t head, mnl_cb_t each, void *context)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, type, NLM_F_DUMP);
    struct rtgenmsg *question = mnl_nlmsg_put_extra_header(request, sizeof *question);
    struct netlink nl;
    int result = netlink_open(&nl, NETLINK_ROUTE);

    question->rtgen_family = (unsigned char)family;
    if (result == 0)
        result = netlink_ask(&nl, request, head, each, context);
    netlink_close(&nl);
    return result;
}

const struct nlattr *netlink_between(const void *begin, const void *end, unsigned type)
{
    const struct nlattr *found = NULL;

    for (const struct nlattr *at = begin;
         mnl_attr_ok(at, (int)((const char *)end - (const char *)at)); at = mnl_attr_next(at))
        if (mnl_attr_get_type(at) == type)
            found = at;
    return found;
}

const struct nlattr *netlink_attribute(const struct nlmsghdr *message, size_t size, unsigned type)
{
    return netlink_between(mnl_nlmsg_get_payload_offset(message, size),
                           mnl_nlmsg_get_payload_tail(message), type);
}

const struct nlattr *netlink_nested(const struct nlattr *nest, unsigned type)
{
    const char *begin = mnl_attr_get_payload(nest);

    return netlink_between(begin, begin + mnl_attr_get_payload_len(nest), type);
}

void netlink_take(void *to, size_t size, const struct nlattr *attribute)
{
    const size_t length = attribute != NULL ? mnl_attr_get_payload_len(attribute) : 0;

    if (length > 0)
        memcpy(to, mnl_attr_get_payload(attribute), length < size ? length : size);
}

uint32_t netlink_u32(const struct nlattr *attribute)
{
    uint32_t number = 0;

    netlink_take(&number, sizeof number, attribute);
    return number;
}
