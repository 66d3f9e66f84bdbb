#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/base/grow.h"
#include "daemon/torus-routed/kernel/kernel.h"

static struct rtmsg *put_route(struct nlmsghdr *request, const struct ip *to)
{
    struct rtmsg *head = mnl_nlmsg_put_extra_header(request, sizeof *head);

    head->rtm_family = (uint8_t)to->family;
    head->rtm_dst_len = (uint8_t)(8 * ip_length(to));
    head->rtm_table = RT_TABLE_MAIN;
    head->rtm_protocol = ROUTE_PROTOCOL;
    mnl_attr_put(request, RTA_DST, ip_length(to), &to->v6);
    mnl_attr_put_u32(request, RTA_PRIORITY, ROUTE_METRIC);
    return head;
}

/* The address of an IPv4 gateway belongs to another of its interfaces, but it answers for this address at the cable.
 * "onlink" says that no network leads there. */
static void put_hops(struct nlmsghdr *request, struct rtmsg *head, const struct netlink_route *r)
{
    struct nlattr *all;

    if (r->hops == 1) {
        mnl_attr_put_u32(request, RTA_OIF, r->hop[0].interface);
        mnl_attr_put(request, RTA_GATEWAY, ip_length(&r->hop[0].gateway), &r->hop[0].gateway.v6);
        head->rtm_flags = RTNH_F_ONLINK;
        return;
    }
    all = mnl_attr_nest_start(request, RTA_MULTIPATH);
    for (unsigned i = 0; i < r->hops; i++) {
        struct rtnexthop *hop = mnl_nlmsg_get_payload_tail(request);
        request->nlmsg_len += (uint32_t)sizeof *hop;
        *hop = (struct rtnexthop){.rtnh_flags = RTNH_F_ONLINK,
                                  .rtnh_hops = (unsigned char)(r->hop[i].weight - 1),
                                  .rtnh_ifindex = (int)r->hop[i].interface};
        mnl_attr_put(request, RTA_GATEWAY, ip_length(&r->hop[i].gateway), &r->hop[i].gateway.v6);
        hop->rtnh_len = (unsigned short)((char *)mnl_nlmsg_get_payload_tail(request) - (char *)hop);
    }
    mnl_attr_nest_end(request, all);
}

int netlink_put_route(struct netlink *nl, const struct netlink_route *r)
{
    static const uint8_t types[] = {RTN_UNICAST, RTN_BLACKHOLE, RTN_UNREACHABLE};
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
    struct rtmsg *head = put_route(request, &r->to);
    struct nlattr *metrics;

    head->rtm_type = types[r->kind];
    head->rtm_scope = RT_SCOPE_UNIVERSE;
    if (r->kind == NETLINK_NEXT_HOPS) {
        put_hops(request, head, r);
        if (r->source.family != 0)
            mnl_attr_put(request, RTA_PREFSRC, ip_length(&r->source), &r->source.v6);
        metrics = mnl_attr_nest_start(request, RTA_METRICS);
        if (r->mtu != 0)
            mnl_attr_put_u32(request, RTAX_MTU, r->mtu);
        if (r->congestion != NULL)
            mnl_attr_put_strz(request, RTAX_CC_ALGO, r->congestion);
        mnl_attr_nest_end(request, metrics);
    }
    return netlink_do(nl, request);
}

int netlink_remove_route(struct netlink *nl, const struct ip *to)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_DELROUTE, 0);

    put_route(request, to)->rtm_scope = RT_SCOPE_NOWHERE; /* any */
    return netlink_do(nl, request) == 0 || errno == ESRCH ? 0 : -1;
}

/* --- what there is --- */

struct listing {
    void (*on_route)(void *context, const struct netlink_route *route);
    void *context;
};

static void add_hop(struct netlink_route *r, unsigned interface, unsigned weight, unsigned flags,
                    const struct nlattr *gateway)
{
    struct netlink_hop *hop = &r->hop[r->hops];

    if (r->hops == TORUS_MAX_PORTS || (flags & RTNH_F_DEAD) != 0)
        return;
    *hop = (struct netlink_hop){.interface = interface, .weight = weight};
    if (gateway != NULL)
        ip_take(&hop->gateway, r->to.family, gateway);
    r->hops++;
}

static void take_hops(struct netlink_route *r, const struct nlattr *all)
{
    const struct rtnexthop *hop = mnl_attr_get_payload(all);
    int left = mnl_attr_get_payload_len(all);

    while (left >= (int)sizeof *hop && hop->rtnh_len >= sizeof *hop && hop->rtnh_len <= left) {
        add_hop(r, (unsigned)hop->rtnh_ifindex, hop->rtnh_hops + 1u, hop->rtnh_flags,
                netlink_between(hop + 1, (const char *)hop + hop->rtnh_len, RTA_GATEWAY));
        left -= (int)RTNH_ALIGN(hop->rtnh_len);
        hop = (const struct rtnexthop *)((const char *)hop + RTNH_ALIGN(hop->rtnh_len));
    }
}

static void take_metrics(struct netlink_route *r, const struct nlattr *metrics)
{
    const struct nlattr *congestion = netlink_nested(metrics, RTAX_CC_ALGO);

    r->mtu = netlink_u32(netlink_nested(metrics, RTAX_MTU));
    r->congestion = congestion != NULL ? mnl_attr_get_str(congestion) : NULL;
}

static int on_message(const struct nlmsghdr *message, void *context)
{
    const struct listing *l = context;
    const struct rtmsg *head = mnl_nlmsg_get_payload(message);
    const struct nlattr *to = netlink_attribute(message, sizeof *head, RTA_DST);
    const struct nlattr *all = netlink_attribute(message, sizeof *head, RTA_MULTIPATH);
    const struct nlattr *interface = netlink_attribute(message, sizeof *head, RTA_OIF);
    const struct nlattr *source = netlink_attribute(message, sizeof *head, RTA_PREFSRC);
    const struct nlattr *metrics = netlink_attribute(message, sizeof *head, RTA_METRICS);
    struct netlink_route r = {0};

    /* The kernel also lists what it has learned about a route, such as the MTU of its path: a clone of the route. */
    if (head->rtm_protocol != ROUTE_PROTOCOL || head->rtm_table != RT_TABLE_MAIN || to == NULL ||
        (head->rtm_flags & RTM_F_CLONED) != 0)
        return MNL_CB_OK;
    ip_take(&r.to, head->rtm_family, to);
    r.kind = head->rtm_type == RTN_UNICAST     ? NETLINK_NEXT_HOPS
             : head->rtm_type == RTN_BLACKHOLE ? NETLINK_DROP
                                               : NETLINK_UNREACHABLE;
    if (source != NULL)
        ip_take(&r.source, head->rtm_family, source);
    if (metrics != NULL)
        take_metrics(&r, metrics);
    if (all != NULL)
        take_hops(&r, all);
    else if (r.kind == NETLINK_NEXT_HOPS && interface != NULL)
        add_hop(&r, netlink_u32(interface), 1, head->rtm_flags,
                netlink_attribute(message, sizeof *head, RTA_GATEWAY));
    l->on_route(l->context, &r);
    return MNL_CB_OK;
}

int netlink_list_routes(struct netlink *nl, int family,
                        void (*on_route)(void *context, const struct netlink_route *route),
                        void *context)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETROUTE, NLM_F_DUMP);
    struct rtmsg *head = mnl_nlmsg_put_extra_header(request, sizeof *head);
    struct listing l = {on_route, context};

    head->rtm_family = (uint8_t)family;
    return netlink_ask(nl, request, sizeof *head, on_message, &l);
}

/* --- the end --- */

struct destinations {
    struct ip *to;
    size_t count, room;
    bool failed;
};

static void on_destination(void *context, const struct netlink_route *route)
{
    struct destinations *d = context;

    if (GROW(d->to, d->count, d->room) != 0)
        d->failed = true;
    else
        d->to[d->count++] = route->to;
}

int netlink_remove_routes(struct netlink *nl)
{
    struct destinations d = {0};
    int rc = netlink_list_routes(nl, AF_INET, on_destination, &d) |
             netlink_list_routes(nl, AF_INET6, on_destination, &d);

    for (size_t i = 0; i < d.count; i++)
        rc |= netlink_remove_route(nl, &d.to[i]);
    free(d.to);
    return rc != 0 || d.failed ? -1 : 0;
}

#define STATE_ESTABLISHED 1u /* TCP_ESTABLISHED */

struct connection_listing {
    void (*on_connection)(void *context, const struct ip *to, uint64_t cookie, uint64_t sent);
    void *context;
};

static int on_connection_message(const struct nlmsghdr *message, void *context)
{
    const struct connection_listing *l = context;
    const struct inet_diag_msg *connection = mnl_nlmsg_get_payload(message);
    const struct nlattr *attribute = netlink_attribute(message, sizeof *connection, INET_DIAG_INFO);
    struct tcp_info info = {0};
    struct ip to = {.family = connection->idiag_family};

    if (attribute == NULL)
        return MNL_CB_OK;
    netlink_take(&info, sizeof info, attribute);
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
    struct connection_listing l = {on_connection, context};
    struct netlink nl;
    int rc = netlink_open(&nl, NETLINK_SOCK_DIAG);

    question->sdiag_family = (uint8_t)family;
    question->sdiag_protocol = IPPROTO_TCP;
    question->idiag_ext = 1u << (INET_DIAG_INFO - 1);
    question->idiag_states = 1u << STATE_ESTABLISHED;
    if (rc == 0)
        rc = netlink_ask(&nl, request, sizeof(struct inet_diag_msg), on_connection_message, &l);
    netlink_close(&nl);
    return rc;
}
