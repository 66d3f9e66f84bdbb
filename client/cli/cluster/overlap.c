#include "client/cli/cluster/overlap.h"

#include <arpa/inet.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "client/cli/cluster/host_files.h"
#include "daemon/lib/host/netlink.h"

#define MOST 8u         /* warnings */
#define OWN_PROTOCOL 84 /* of the routes of torus-routed and 'torusctl ip-routes' */

struct search {
    const struct cluster *cluster;
    uint32_t rank;
    json_t *warnings;
    unsigned family, found;
};

/* What a route says. */
struct network {
    const uint8_t *to; /* NULL: everything, which collides with nothing */
    unsigned bits;
    char interface[IF_NAMESIZE];
};

static size_t length_of(unsigned family)
{
    return family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

static struct network read_route(const struct nlmsghdr *m)
{
    const struct rtmsg *route = mnl_nlmsg_get_payload(m);
    const struct nlattr *to = netlink_attribute(m, sizeof *route, RTA_DST);
    const struct nlattr *hops = netlink_attribute(m, sizeof *route, RTA_MULTIPATH);
    struct network n = {.bits = route->rtm_dst_len};
    unsigned index = netlink_u32(netlink_attribute(m, sizeof *route, RTA_OIF));
    struct rtnexthop hop = {.rtnh_ifindex = (int)index};

    if (to != NULL && mnl_attr_get_payload_len(to) == length_of(route->rtm_family))
        n.to = mnl_attr_get_payload(to);
    netlink_take(&hop, sizeof hop, hops);
    index = (unsigned)hop.rtnh_ifindex;
    if (index == 0 || if_indextoname(index, n.interface) == NULL)
        (void)strcpy(n.interface, "?");
    return n;
}

static bool contains(const struct network *n, const uint8_t *address)
{
    const unsigned bytes = n->bits / 8, rest = n->bits % 8;

    if (n->bits == 0 || n->to == NULL || memcmp(n->to, address, bytes) != 0)
        return false;
    return rest == 0 || (n->to[bytes] ^ address[bytes]) >> (8 - rest) == 0;
}

/* Whether torusd uses this interface. */
static bool is_own(const struct search *s, const char *interface)
{
    if (strcmp(interface, OWN_INTERFACE) == 0 || strcmp(interface, "lo") == 0)
        return true;
    for (unsigned port = 0; port < TORUS_MAX_PORTS; port++)
        if (strcmp(s->cluster->hosts[s->rank].port[port].interface, interface) == 0)
            return true;
    return false;
}

static void warn(struct search *s, const struct network *n, const void *address, uint32_t host)
{
    char network[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];

    (void)inet_ntop((int)s->family, n->to, network, sizeof network);
    (void)inet_ntop((int)s->family, address, own, sizeof own);
    (void)json_array_append_new(
        s->warnings,
        json_sprintf(
            "the address %s of %s is in the network %s/%u, which this machine reaches over "
            "%s: machines there and hosts of the torus could be taken for each other; give "
            "the hosts other addresses (%s in [cluster])",
            own, s->cluster->hosts[host].name, network, n->bits, n->interface,
            s->family == AF_INET ? "address" : "address6"));
    s->found++;
}

static int look_at(const struct nlmsghdr *m, void *context)
{
    struct search *s = context;
    const struct rtmsg *route = mnl_nlmsg_get_payload(m);

    if (route->rtm_family != s->family || route->rtm_type != RTN_UNICAST ||
        route->rtm_protocol == OWN_PROTOCOL || s->found == MOST ||
        (route->rtm_flags & RTM_F_CLONED) != 0)
        return MNL_CB_OK;
    const struct network n = read_route(m);
    if (is_own(s, n.interface) || n.bits > 8 * length_of(s->family))
        return MNL_CB_OK;
    for (uint32_t host = 0; host < s->cluster->count; host++) {
        struct in6_addr v6;
        const uint8_t *address = (const uint8_t *)&s->cluster->hosts[host].address;
        if (s->family == AF_INET6 && !host_files_address6(s->cluster, host, &v6))
            return MNL_CB_OK;
        address = s->family == AF_INET6 ? v6.s6_addr : address;
        if (contains(&n, address)) {
            warn(s, &n, address, host);
            return MNL_CB_OK;
        }
    }
    return MNL_CB_OK;
}

void overlap_warn(const struct cluster *c, uint32_t rank, json_t *warnings)
{
    static const unsigned char families[] = {AF_INET, AF_INET6};

    for (unsigned i = 0; c->ip_routes && i < sizeof families; i++) {
        struct search s = {.cluster = c, .rank = rank, .warnings = warnings, .family = families[i]};
        (void)netlink_list(RTM_GETROUTE, families[i], sizeof(struct rtmsg), look_at, &s);
    }
}
