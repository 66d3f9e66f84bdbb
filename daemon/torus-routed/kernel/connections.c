#include "daemon/torus-routed/kernel/connections.h"

#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <string.h>

#include "daemon/torus-routed/kernel/netlink_internal.h"

#define STATE_ESTABLISHED 1u /* TCP_ESTABLISHED */

struct listing {
    void (*on_connection)(void *context, const struct ip *to, uint64_t cookie, uint64_t sent);
    void *context;
};

static int on_message(const struct nlmsghdr *message, void *context)
{
    const struct listing *l = context;
    const struct inet_diag_msg *connection = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute;
    struct tcp_info info = {0};
    struct ip to = {.family = connection->idiag_family};

    if (mnl_nlmsg_get_payload_len(message) < sizeof *connection)
        return MNL_CB_OK;
    attribute = netlink_attribute(message, sizeof *connection, INET_DIAG_INFO);
    if (attribute == NULL)
        return MNL_CB_OK;
    memcpy(&info, mnl_attr_get_payload(attribute),
           mnl_attr_get_payload_len(attribute) < sizeof info ? mnl_attr_get_payload_len(attribute)
                                                             : sizeof info);
    memcpy(&to.v6, connection->id.idiag_dst, ip_length(&to));
    l->on_connection(l->context, &to,
                     (uint64_t)connection->id.idiag_cookie[1] << 32 |
                         connection->id.idiag_cookie[0],
                     info.tcpi_bytes_acked);
    return MNL_CB_OK;
}

int connections_list(int family,
                     void (*on_connection)(void *context, const struct ip *to, uint64_t cookie,
                                           uint64_t sent),
                     void *context)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP);
    struct inet_diag_req_v2 *question = mnl_nlmsg_put_extra_header(request, sizeof *question);
    struct listing l = {on_connection, context};
    struct netlink nl;
    int rc = netlink_open_for(&nl, NETLINK_SOCK_DIAG);

    question->sdiag_family = (uint8_t)family;
    question->sdiag_protocol = IPPROTO_TCP;
    question->idiag_ext = 1u << (INET_DIAG_INFO - 1);
    question->idiag_states = 1u << STATE_ESTABLISHED;
    if (rc == 0)
        rc = netlink_ask(&nl, request, on_message, &l);
    netlink_close(&nl);
    return rc;
}
