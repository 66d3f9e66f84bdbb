#include <errno.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <stdio.h>
#include <string.h>

#include "daemon/routed/kernel/netlink_internal.h"

static struct ifinfomsg *put_link(struct nlmsghdr *request)
{
    return mnl_nlmsg_put_extra_header(request, sizeof(struct ifinfomsg));
}

static int on_link(const struct nlmsghdr *message, void *context)
{
    struct netlink_interface *out = context;
    const struct ifinfomsg *link = mnl_nlmsg_get_payload(message);
    const struct nlattr *mtu = netlink_attribute(message, sizeof *link, IFLA_MTU);

    out->index = (unsigned)link->ifi_index;
    out->up = (link->ifi_flags & IFF_UP) != 0;
    out->mtu = mtu != NULL ? mnl_attr_get_u32(mtu) : 0;
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
    return netlink_ask(nl, request, on_link, out) == 0 && out->index != 0;
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
    return netlink_ask(nl, request, NULL, NULL);
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
    return netlink_ask(nl, request, NULL, NULL);
}

static int set_up(struct netlink *nl, const char *name)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_NEWLINK, 0);
    struct ifinfomsg *link = put_link(request);

    link->ifi_flags = link->ifi_change = IFF_UP;
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return netlink_ask(nl, request, NULL, NULL);
}

static int add_interface(struct netlink *nl, const char *name)
{
    struct netlink_interface found;
    char peer[IFNAMSIZ];

    (void)snprintf(peer, sizeof peer, "%.9s-peer", name);
    if (!netlink_interface(nl, name, &found) && add_dummy(nl, name) != 0 &&
        add_pair(nl, name, peer) != 0)
        return -1;
    if (netlink_interface(nl, peer, &found) && set_up(nl, peer) != 0)
        return -1;
    return set_up(nl, name);
}

static int change_address(struct netlink *nl, unsigned interface, const struct ip *address,
                          bool add)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, add ? RTM_NEWADDR : RTM_DELADDR,
                                             add ? NLM_F_CREATE | NLM_F_REPLACE : 0);
    struct ifaddrmsg *head = mnl_nlmsg_put_extra_header(request, sizeof *head);

    head->ifa_family = (uint8_t)address->family;
    head->ifa_prefixlen = (uint8_t)(8 * ip_length(address));
    head->ifa_index = interface;
    head->ifa_flags = address->family == AF_INET6 ? IFA_F_NODAD : 0;
    mnl_attr_put(request, IFA_LOCAL, ip_length(address), &address->v6);
    mnl_attr_put(request, IFA_ADDRESS, ip_length(address), &address->v6);
    return netlink_ask(nl, request, NULL, NULL);
}

#define ADDRESSES_MOST 32u

struct addresses {
    unsigned interface, count;
    struct ip address[ADDRESSES_MOST];
};

static int on_address(const struct nlmsghdr *message, void *context)
{
    struct addresses *found = context;
    const struct ifaddrmsg *head = mnl_nlmsg_get_payload(message);
    const struct nlattr *address = netlink_attribute(message, sizeof *head, IFA_ADDRESS);

    if (head->ifa_index != found->interface || head->ifa_scope == RT_SCOPE_LINK)
        return MNL_CB_OK;
    if (address != NULL && found->count < ADDRESSES_MOST)
        ip_take(&found->address[found->count++], head->ifa_family, address);
    return MNL_CB_OK;
}

/* Removes the addresses of the interface that are not in the list. */
static int remove_others(struct netlink *nl, unsigned interface, const struct ip *address,
                         unsigned count)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_GETADDR, NLM_F_DUMP);
    struct addresses found = {.interface = interface};

    (void)mnl_nlmsg_put_extra_header(request, sizeof(struct ifaddrmsg));
    if (netlink_ask(nl, request, on_address, &found) != 0)
        return -1;
    for (unsigned i = 0; i < found.count; i++) {
        bool wanted = false;
        for (unsigned j = 0; j < count; j++)
            wanted |= ip_equal(&found.address[i], &address[j]);
        if (!wanted && change_address(nl, interface, &found.address[i], false) != 0)
            return -1;
    }
    return 0;
}

int netlink_own_interface(struct netlink *nl, const char *name, const struct ip *address,
                          unsigned count)
{
    struct netlink_interface own;

    if (add_interface(nl, name) != 0 || !netlink_interface(nl, name, &own))
        return -1;
    for (unsigned i = 0; i < count; i++)
        if (change_address(nl, own.index, &address[i], true) != 0)
            return -1;
    return remove_others(nl, own.index, address, count);
}

int netlink_remove_interface(struct netlink *nl, const char *name)
{
    char buffer[NETLINK_REQUEST_SIZE];
    struct nlmsghdr *request = netlink_begin(buffer, RTM_DELLINK, 0);

    (void)put_link(request);
    mnl_attr_put_strz(request, IFLA_IFNAME, name);
    return netlink_ask(nl, request, NULL, NULL) == 0 || errno == ENODEV ? 0 : -1;
}
