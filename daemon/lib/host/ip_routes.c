/* The routes that torus-routed or `torusctl ip-routes` has set: they have a protocol number and an interface of their
 * own. Any user may ask the kernel for them. */
#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/lib/host/gather.h"
#include "daemon/lib/host/kernel_route.h"
#include "daemon/lib/host/netlink.h"
#include "proto/routes.h"

#define INTERFACE "torus0" /* daemon/lib/cluster/hosts_file.h */

#define ADDRESSES_MOST 4096u /* whose routes the kernel is asked for */

struct routes {
    unsigned ways; /* to other hosts; not those that drop packets because no link leads there */
    bool any, routed;
    struct in_addr *to; /* of `ways`, as far as there is room */
    unsigned room, listed;
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

static void list_address(const struct nlmsghdr *m, const struct rtmsg *route, struct routes *found)
{
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *route);

    for (const struct rtattr *r = RTM_RTA(route); RTA_OK(r, left); r = RTA_NEXT(r, left))
        if (r->rta_type == RTA_DST && RTA_PAYLOAD(r) == sizeof *found->to &&
            found->listed < found->room)
            memcpy(&found->to[found->listed++], RTA_DATA(r), sizeof *found->to);
}

static void count_route(const struct nlmsghdr *m, void *context)
{
    const struct rtmsg *route = NLMSG_DATA(m);
    struct routes *found = context;

    if (m->nlmsg_type != RTM_NEWROUTE || m->nlmsg_len < NLMSG_LENGTH(sizeof *route) ||
        route->rtm_protocol != ROUTE_PROTOCOL || (route->rtm_flags & RTM_F_CLONED) != 0)
        return;
    found->ways += route->rtm_type == RTN_UNICAST;
    if (route->rtm_type == RTN_UNICAST && route->rtm_dst_len == 32)
        list_address(m, route, found);
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

/* Returns to how many hosts the kernel takes another route, from this address; *first: the first of them. */
static unsigned count_diverted(struct kernel_routes *k, const struct routes *routes,
                               const struct in_addr *from, struct kernel_answer *first)
{
    struct kernel_network network = {.family = 0};
    struct kernel_answer answer;
    char text[INET6_ADDRSTRLEN + 4];
    unsigned count = 0;

    for (unsigned i = 0; i < routes->listed; i++)
        kernel_network_add(&network, AF_INET, &routes->to[i]);
    kernel_network_write(&network, text, sizeof text);
    for (unsigned i = 0; i < routes->listed; i++)
        if (kernel_route_ask(k, AF_INET, &routes->to[i], from, text, &answer) == 0 &&
            !answer.ours && count++ == 0)
            *first = answer;
    return count;
}

static void ask_kernel(struct facts *f, const struct routes *routes, const struct in_addr *from)
{
    struct kernel_routes k;
    struct kernel_answer first;
    unsigned count;

    if (kernel_routes_open(&k) == 0) {
        count = count_diverted(&k, routes, from, &first);
        facts_add(f, "ip_routes.diverted", "%u", count);
        if (count > 0)
            facts_add(f, "ip_routes.diverted_by", "%s", first.text);
        if (count > 0 && first.mend[0] != '\0')
            facts_add(f, "ip_routes.mend", "%s", first.mend);
    } else {
        facts_add(f, "unseen.ip_routes.diverted", "the kernel did not say which routes it takes");
    }
    kernel_routes_close(&k);
}

void gather_ip_routes(struct facts *f)
{
    struct own_address own = {.index = if_nametoindex(INTERFACE)};
    struct routes routes = {.to = calloc(ADDRESSES_MOST, sizeof(struct in_addr))};
    struct in_addr from;

    routes.room = routes.to != NULL ? ADDRESSES_MOST : 0;

    if (host_netlink_list(RTM_GETROUTE, AF_INET, count_route, &routes) == 0)
        facts_add(f, "ip_routes.count", "%u", routes.ways);
    else
        facts_add(f, "unseen.ip_routes.count", "the kernel did not list its routes");
    if (routes.any)
        facts_add(f, "ip_routes.by", "%s", routes.routed ? "torus-routed" : "ip-routes");
    facts_add(f, "ip_routes.interface", "%s", own.index != 0 ? INTERFACE : "none");
    if (own.index != 0 && host_netlink_list(RTM_GETADDR, AF_INET, find_address, &own) == 0 &&
        own.text[0] != '\0')
        facts_add(f, "ip_routes.address", "%s", own.text);
    if (routes.listed > 0)
        ask_kernel(f, &routes, inet_pton(AF_INET, own.text, &from) == 1 ? &from : NULL);
    free(routes.to);
}

/* Takes "port.+0 10.0.0.1:7411". Returns false if it is another line, or has no IPv4 address. */
static bool read_port(const char *line, char name[16], struct in_addr *address)
{
    char text[INET_ADDRSTRLEN];

    return sscanf(line, "port.%15[^ ] %15[0-9.]:", name, text) == 2 &&
           inet_pton(AF_INET, text, address) == 1;
}

static void ask_for_cable(struct facts *f, struct kernel_routes *k, const char *port,
                          const struct in_addr *address)
{
    struct kernel_network network = {.family = 0};
    char text[INET6_ADDRSTRLEN + 4], key[64];
    struct kernel_answer answer;

    kernel_network_add(&network, AF_INET, address);
    kernel_network_write(&network, text, sizeof text);
    if (kernel_route_ask(k, AF_INET, address, NULL, text, &answer) != 0 || answer.usual)
        return;
    (void)snprintf(key, sizeof key, "port.%s.diverted", port);
    facts_add(f, key, "%s", answer.text);
    if (answer.mend[0] == '\0')
        return;
    (void)snprintf(key, sizeof key, "port.%s.mend", port);
    facts_add(f, key, "%s", answer.mend);
}

void gather_diverted_cables(struct facts *f, const char *settings)
{
    struct kernel_routes k;
    struct in_addr address;
    char port[16];

    if (kernel_routes_open(&k) != 0)
        facts_add(f, "unseen.diverted", "the kernel did not say which routes it takes");
    else
        for (const char *line = settings; *line != '\0';
             line += strcspn(line, "\n"), line += *line != '\0')
            if (read_port(line, port, &address))
                ask_for_cable(f, &k, port, &address);
    kernel_routes_close(&k);
}
