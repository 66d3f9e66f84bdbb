/* The routes that torus-routed or `torusctl ip-routes` has set: they have a protocol number and an interface of their
 * own. Any user may ask the kernel for them. */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>

#include "daemon/host/gather.h"
#include "daemon/host/netlink.h"
#include "proto/routes.h"

#define INTERFACE "torus0" /* daemon/cluster/hosts_file.h */

struct routes {
    unsigned ways; /* to other hosts; not those that drop packets because no link leads there */
    bool any, routed;
};

static uint32_t metric_of(const struct nlmsghdr *m, const struct rtmsg *route)
{
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *route);
    uint32_t metric = 0;

    for (const struct rtattr *r = RTM_RTA(route); RTA_OK(r, left); r = RTA_NEXT(r, left))
        if (r->rta_type == RTA_PRIORITY && RTA_PAYLOAD(r) == sizeof metric)
            memcpy(&metric, RTA_DATA(r), sizeof metric);
    return metric;
}

static void count_route(const struct nlmsghdr *m, void *context)
{
    const struct rtmsg *route = NLMSG_DATA(m);
    struct routes *found = context;

    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof *route) ||
        route->rtm_protocol != ROUTE_PROTOCOL || (route->rtm_flags & RTM_F_CLONED) != 0)
        return;
    found->ways += route->rtm_type == RTN_UNICAST;
    found->any = true;
    found->routed |= metric_of(m, route) == ROUTE_METRIC;
}

struct own_address {
    unsigned index;
    char text[INET_ADDRSTRLEN];
};

static void find_address(const struct nlmsghdr *m, void *context)
{
    struct own_address *own = context;
    const struct ifaddrmsg *a = NLMSG_DATA(m);

    if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof *a) ||
        a->ifa_index != own->index)
        return;
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *a);
    for (const struct rtattr *r = IFA_RTA(a); RTA_OK(r, left); r = RTA_NEXT(r, left))
        if (r->rta_type == IFA_LOCAL && RTA_PAYLOAD(r) == sizeof(struct in_addr))
            (void)inet_ntop(AF_INET, RTA_DATA(r), own->text, sizeof own->text);
}

void gather_ip_routes(struct facts *f)
{
    struct own_address own = {.index = if_nametoindex(INTERFACE)};
    struct routes routes = {0};

    if (host_netlink_list(RTM_GETROUTE, AF_INET, count_route, &routes) == 0)
        facts_add(f, "ip_routes.count", "%u", routes.ways);
    if (routes.any)
        facts_add(f, "ip_routes.by", "%s", routes.routed ? "torus-routed" : "ip-routes");
    facts_add(f, "ip_routes.interface", "%s", own.index != 0 ? INTERFACE : "none");
    if (own.index != 0 && host_netlink_list(RTM_GETADDR, AF_INET, find_address, &own) == 0 &&
        own.text[0] != '\0')
        facts_add(f, "ip_routes.address", "%s", own.text);
}
