#include "daemon/lib/host/interface_list.h"

#include <linux/if.h>
#include <linux/if_arp.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/lib/host/netlink.h"

static void read_stats(const void *data, struct interface *i)
{
    /* The attribute need not be aligned, and older kernels have less of it. */
    memcpy(&i->stats, data, offsetof(struct rtnl_link_stats64, rx_compressed));
    i->has_stats = true;
}

static void read_attributes(const struct nlmsghdr *m, struct interface *i)
{
    const struct ifinfomsg *info = NLMSG_DATA(m);
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *info);

    for (const struct rtattr *r = IFLA_RTA(info); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
        const void *data = RTA_DATA(r);
        const size_t size = RTA_PAYLOAD(r);
        const unsigned type = r->rta_type & (unsigned)NLA_TYPE_MASK;
        if (type == IFLA_IFNAME && size > 0 && ((const char *)data)[size - 1] == '\0')
            i->name = data;
        else if (type == IFLA_MTU && size >= sizeof *i->mtu)
            i->mtu = data;
        else if (type == IFLA_CARRIER_CHANGES && size >= sizeof *i->carrier_changes)
            i->carrier_changes = data;
        else if (type == IFLA_CARRIER && size >= 1)
            i->carrier = data;
        else if (type == IFLA_ADDRESS && size == 6)
            i->address = data;
        else if (type == IFLA_STATS64 && size >= offsetof(struct rtnl_link_stats64, rx_compressed))
            read_stats(data, i);
        else if (type == IFLA_LINKINFO) /* a virtual interface of some kind */
            i->physical = false;
    }
}

struct listing {
    void (*each)(const struct interface *interface, void *context);
    void *context;
};

static void list_link(const struct nlmsghdr *m, void *context)
{
    const struct listing *l = context;
    const struct ifinfomsg *info = NLMSG_DATA(m);

    if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < NLMSG_LENGTH(sizeof *info))
        return;
    struct interface i = {.index = info->ifi_index,
                          .is_up = (info->ifi_flags & IFF_UP) != 0,
                          .physical = info->ifi_type != ARPHRD_LOOPBACK};
    read_attributes(m, &i);
    if (i.name != NULL && strchr(i.name, ' ') == NULL && strchr(i.name, '/') == NULL)
        l->each(&i, l->context);
}

int interfaces_list(void (*each)(const struct interface *interface, void *context), void *context)
{
    struct listing l = {each, context};

    return host_netlink_list(RTM_GETLINK, AF_UNSPEC, list_link, &l);
}
