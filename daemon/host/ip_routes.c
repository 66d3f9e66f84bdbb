/* The routes that `torusctl ip-routes` has set: they have a protocol number and an interface of their own. Any user may
 * ask the kernel for them. */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include "daemon/host/gather.h"
#include "daemon/host/netlink.h"

#define INTERFACE "torus0" /* daemon/cluster/hosts_file.h */
#define PROTOCOL 84        /* client/cli/ip_routes/route_script.c */

static void count_route(const struct nlmsghdr *m, void *context)
{
    const struct rtmsg *route = NLMSG_DATA(m);

    if (m->nlmsg_type == RTM_NEWROUTE && m->nlmsg_len >= NLMSG_LENGTH(sizeof *route) &&
        route->rtm_protocol == PROTOCOL)
        (*(unsigned *)context)++;
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
    unsigned routes = 0;

    if (host_netlink_list(RTM_GETROUTE, AF_INET, count_route, &routes) == 0)
        facts_add(f, "ip_routes.count", "%u", routes);
    facts_add(f, "ip_routes.interface", "%s", own.index != 0 ? INTERFACE : "none");
    if (own.index != 0 && host_netlink_list(RTM_GETADDR, AF_INET, find_address, &own) == 0 &&
        own.text[0] != '\0')
        facts_add(f, "ip_routes.address", "%s", own.text);
}
