#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>

#include "daemon/torus-routed/kernel/kernel.h"

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
    netlink_take(&ip->v6, ip_length(ip), attribute);
}

static struct ifinfomsg *put_link(struct nlmsghdr *request)
{
    return mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg));
}

static int on_link(const struct nlmsghdr *message, void *context)
{
    struct netlink_interface *out = context;
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);

    out->index = (unsigned)link->ifi_index;
    out->up = (link->ifi_flags & IFF_UP) != 0;
    out->carrier = (link->ifi_flags & IFF_RUNNING) != 0;
    out->mtu = netlink_u32(netlink_attribute(message, sizeof *link, IFLA_MTU));
    return MNL_CB_OK;
}

bool netlink_interface(struct netlink *nl, const char *name, struct netlink_interface *out)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETLINK, 0);

    *out = (struct netlink_interface){0};
    if (name[0] == '\0' || strlen(name) >= IFNAMSIZ)
        return false;
    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return netlink_ask(nl, request, sizeof(struct ifinfomsg), on_link, out) == 0 && out->index != 0;
}

static int on_statistics(const struct nlmsghdr *message, void *context)
{
    uint64_t *sent = context;
    struct rtnl_link_stats64 statistics = {0};

    netlink_take(&statistics, sizeof statistics,
                 netlink_attribute(message, sizeof(struct if_stats_msg), IFLA_STATS_LINK_64));
    *sent = statistics.tx_bytes;
    return MNL_CB_OK;
}

int netlink_sent(struct netlink *nl, unsigned index, uint64_t *sent)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETSTATS, 0);
    struct if_stats_msg *head = mnl_nlmsg_put_extra_header(request, sizeof *head);

    *sent = 0;
    head->ifindex = index;
    head->filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64);
    return netlink_ask(nl, request, sizeof *head, on_statistics, sent) == 0 || errno == ENODEV ? 0
                                                                                               : -1;
}

static int add_dummy(struct netlink *nl, const char *name)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    struct nlattr *info;

    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    info = mnl_attr_nest_start(request, IFLA_LINKINFO);
    mnl_attr_put_strz(request, IFLA_INFO_KIND, "dummy");
    mnl_attr_nest_end(request, info);
    return netlink_do(nl, request);
}

/* Not every kernel has dummy devices. Two devices that are cabled to each other serve as well. */
static int add_pair(struct netlink *nl, const char *name, const char *peer)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
    struct nlattr *info, *data, *other;

    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    info = mnl_attr_nest_start(request, IFLA_LINKINFO);
    mnl_attr_put_strz(request, IFLA_INFO_KIND, "veth");
    data = mnl_attr_nest_start(request, IFLA_INFO_DATA);
    other = mnl_attr_nest_start(request, VETH_INFO_PEER);
    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, peer);
    mnl_attr_nest_end(request, other);
    mnl_attr_nest_end(request, data);
    mnl_attr_nest_end(request, info);
    return netlink_do(nl, request);
}

static int set_up(struct netlink *nl, const char *name)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_NEWLINK, 0);
    struct ifinfomsg *link = put_link(request);

    link->ifi_flags = link->ifi_change = IFF_UP;
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return netlink_do(nl, request);
}

static void peer_of(const char *name, char peer[IFNAMSIZ])
{
    (void)snprintf(peer, IFNAMSIZ, "%.9s-peer", name);
}

int netlink_make_interface(struct netlink *nl, const char *name)
{
    struct netlink_interface own, other;
    char peer[IFNAMSIZ];

    peer_of(name, peer);
    if (!netlink_interface(nl, name, &own) && add_dummy(nl, name) != 0 &&
        add_pair(nl, name, peer) != 0)
        return -1;
    if (netlink_interface(nl, peer, &other) && !other.up && set_up(nl, peer) != 0)
        return -1;
    return own.up ? 0 : set_up(nl, name);
}

/* --- who has made an interface --- */

struct maker {
    bool exists, dummy, pair;
    unsigned other; /* the other end of a pair */
};

static int on_maker(const struct nlmsghdr *message, void *context)
{
    struct maker *m = context;
    const size_t head = sizeof(struct ifinfomsg);
    const struct nlattr *info = netlink_attribute(message, head, IFLA_LINKINFO);
    const struct nlattr *kind = info != NULL ? netlink_nested(info, IFLA_INFO_KIND) : NULL;

    m->exists = true;
    m->other = netlink_u32(netlink_attribute(message, head, IFLA_LINK));
    m->dummy = kind != NULL && strcmp(mnl_attr_get_str(kind), "dummy") == 0;
    m->pair = kind != NULL && strcmp(mnl_attr_get_str(kind), "veth") == 0;
    return MNL_CB_OK;
}

enum netlink_maker netlink_interface_maker(struct netlink *nl, const char *name)
{
    char buffer[NETLINK_REQUEST_SIZE], peer[IFNAMSIZ];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETLINK, 0);
    struct netlink_interface other;
    struct maker m = {0};

    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    if (netlink_ask(nl, request, sizeof(struct ifinfomsg), on_maker, &m) != 0 || !m.exists)
        return NETLINK_MISSING;
    peer_of(name, peer);
    return m.dummy || (m.pair && netlink_interface(nl, peer, &other) && other.index == m.other)
               ? NETLINK_LIKE_OURS
               : NETLINK_FOREIGN;
}

/* --- its addresses --- */

#define ADDRESSES_MOST 32u

struct address {
    struct ip local, network; /* these differ if the address names the other end of a wire */
    uint8_t length;           /* of the network, in bits */
};

struct addresses {
    unsigned interface, count;
    struct address address[ADDRESSES_MOST];
};

static int change_address(struct netlink *nl, unsigned interface, const struct address *a, bool add)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, add ? RTM_NEWADDR : RTM_DELADDR,
                                             add ? NLM_F_CREATE | NLM_F_REPLACE : 0);
    struct ifaddrmsg *head = mnl_nlmsg_put_extra_header(request, sizeof *head);

    head->ifa_family = (uint8_t)a->local.family;
    head->ifa_prefixlen = a->length;
    head->ifa_index = interface;
    head->ifa_flags = a->local.family == AF_INET6 ? IFA_F_NODAD : 0;
    mnl_attr_put(request, IFA_LOCAL, ip_length(&a->local), &a->local.v6);
    mnl_attr_put(request, IFA_ADDRESS, ip_length(&a->network), &a->network.v6);
    return netlink_do(nl, request);
}

static int on_address(const struct nlmsghdr *message, void *context)
{
    struct addresses *found = context;
    const struct ifaddrmsg *head = mnl_nlmsg_get_payload(message);
    const struct nlattr *network = netlink_attribute(message, sizeof *head, IFA_ADDRESS);
    const struct nlattr *local = netlink_attribute(message, sizeof *head, IFA_LOCAL);
    struct address *a = &found->address[found->count];

    if (head->ifa_index != found->interface || head->ifa_scope == RT_SCOPE_LINK ||
        (network == NULL && local == NULL) || found->count == ADDRESSES_MOST)
        return MNL_CB_OK;
    ip_take(&a->local, head->ifa_family, local != NULL ? local : network);
    ip_take(&a->network, head->ifa_family, network != NULL ? network : local);
    a->length = head->ifa_prefixlen;
    found->count++;
    return MNL_CB_OK;
}

static int list_addresses(struct netlink *nl, unsigned interface, struct addresses *found)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETADDR, NLM_F_DUMP);

    *found = (struct addresses){.interface = interface};
    (void)mnl_nlmsg_put_extra_header(request, sizeof(struct ifaddrmsg));
    return netlink_ask(nl, request, sizeof(struct ifaddrmsg), on_address, found);
}

/* Whether it is this address, for this host only. */
static bool is_address(const struct address *a, const struct ip *ip)
{
    return ip_equal(&a->local, ip) && ip_equal(&a->network, ip) && a->length == 8 * ip_length(ip);
}

/* Changes only what is wrong: for each address that it is sent, the kernel reports a change to all who watch. */
int netlink_set_addresses(struct netlink *nl, const char *name, const struct ip *address,
                          unsigned count)
{
    struct netlink_interface own;
    struct addresses found;

    if (!netlink_interface(nl, name, &own)) {
        errno = ENODEV;
        return -1;
    }
    if (list_addresses(nl, own.index, &found) != 0)
        return -1;
    for (unsigned i = 0; i < found.count; i++) {
        bool wanted = false;
        for (unsigned j = 0; j < count; j++)
            wanted |= is_address(&found.address[i], &address[j]);
        if (!wanted && change_address(nl, own.index, &found.address[i], false) != 0 &&
            errno != EADDRNOTAVAIL) /* it went with another one */
            return -1;
    }
    for (unsigned j = 0; j < count; j++) {
        const struct address a = {address[j], address[j], (uint8_t)(8 * ip_length(&address[j]))};
        bool there = false;
        for (unsigned i = 0; i < found.count; i++)
            there |= is_address(&found.address[i], &address[j]);
        if (!there && change_address(nl, own.index, &a, true) != 0)
            return -1;
    }
    return 0;
}

int netlink_remove_interface(struct netlink *nl, const char *name)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_DELLINK, 0);

    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return netlink_do(nl, request) == 0 || errno == ENODEV ? 0 : -1;
}
