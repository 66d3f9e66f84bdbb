/* Interfaces: what the kernel lists, and what their drivers say. Asking needs no privileges. (/sys is not asked: in a
 * network namespace it may show the interfaces of another one.) */
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/host/gather.h"
#include "daemon/host/netlink.h"

#define INTERFACES_MOST 64u

struct list {
    struct facts *facts;
    int fd; /* for questions to drivers; -1: none */
    unsigned count;
};

static void add(struct facts *f, const char *interface, const char *key, const char *value)
{
    char name[64];

    (void)snprintf(name, sizeof name, "interface.%s.%s", interface, key);
    facts_add(f, name, "%s", value);
}

static void add_number(struct facts *f, const char *interface, const char *key, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    add(f, interface, key, text);
}

/* --- what the driver says --- */

/* Asks the driver; `question` begins with a command of ethtool, and gets the answer. */
static bool ask_driver(int fd, const char *interface, void *question)
{
    struct ifreq request = {.ifr_data = question};

    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    return fd >= 0 && ioctl(fd, SIOCETHTOOL, &request) == 0;
}

static void add_speed(const struct list *l, const char *interface)
{
    struct ethtool_cmd c = {.cmd = ETHTOOL_GSET};

    if (!ask_driver(l->fd, interface, &c))
        return;
    const uint32_t mbit = (uint32_t)c.speed_hi << 16 | c.speed;
    if (mbit > 0 && mbit != (uint32_t)SPEED_UNKNOWN && mbit != UINT16_MAX)
        add_number(l->facts, interface, "speed_mbit", mbit);
    if (c.duplex == DUPLEX_FULL || c.duplex == DUPLEX_HALF)
        add(l->facts, interface, "duplex", c.duplex == DUPLEX_FULL ? "full" : "half");
}

static void add_driver(const struct list *l, const char *interface)
{
    static const struct {
        const char *key;
        uint32_t command;
    } offloads[] = {{"tso", ETHTOOL_GTSO},
                    {"gso", ETHTOOL_GGSO},
                    {"gro", ETHTOOL_GGRO},
                    {"scatter_gather", ETHTOOL_GSG},
                    {"rx_checksum", ETHTOOL_GRXCSUM},
                    {"tx_checksum", ETHTOOL_GTXCSUM}};
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

    if (ask_driver(l->fd, interface, &info)) {
        info.driver[sizeof info.driver - 1] = '\0';
        if (info.driver[0] != '\0')
            add(l->facts, interface, "driver", info.driver);
    }
    add_speed(l, interface);
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        struct ethtool_value value = {.cmd = offloads[i].command};
        if (ask_driver(l->fd, interface, &value))
            add(l->facts, interface, offloads[i].key, value.data != 0 ? "on" : "off");
    }
}

/* --- what the kernel lists --- */

/* The attributes of a link that are used; NULL: not there, or too short. */
struct attributes {
    const char *name;
    const uint32_t *mtu, *carrier_changes;
    const uint8_t *state, *carrier;
    const struct rtnl_link_stats64 *stats;
    const uint8_t *address;
    bool kind; /* it is a virtual interface of some kind */
};

static void read_attributes(const struct nlmsghdr *m, struct attributes *a)
{
    const struct ifinfomsg *info = NLMSG_DATA(m);
    unsigned left = m->nlmsg_len - (unsigned)NLMSG_LENGTH(sizeof *info);

    for (const struct rtattr *r = IFLA_RTA(info); RTA_OK(r, left); r = RTA_NEXT(r, left)) {
        const void *data = RTA_DATA(r);
        const size_t size = RTA_PAYLOAD(r);
        const unsigned type = r->rta_type & (unsigned)NLA_TYPE_MASK;
        if (type == IFLA_IFNAME && size > 0 && ((const char *)data)[size - 1] == '\0')
            a->name = data;
        else if (type == IFLA_MTU && size >= sizeof *a->mtu)
            a->mtu = data;
        else if (type == IFLA_CARRIER_CHANGES && size >= sizeof *a->carrier_changes)
            a->carrier_changes = data;
        else if (type == IFLA_OPERSTATE && size >= 1)
            a->state = data;
        else if (type == IFLA_CARRIER && size >= 1)
            a->carrier = data;
        else if (type == IFLA_ADDRESS && size == 6)
            a->address = data;
        else if (type == IFLA_STATS64 && size >= offsetof(struct rtnl_link_stats64, rx_compressed))
            a->stats = data;
        else if (type == IFLA_LINKINFO)
            a->kind = true;
    }
}

static void add_stats(struct facts *f, const char *interface, const struct rtnl_link_stats64 *from)
{
    struct rtnl_link_stats64 s; /* the attribute need not be aligned */

    memcpy(&s, from, offsetof(struct rtnl_link_stats64, rx_compressed));
    add_number(f, interface, "rx_packets", s.rx_packets);
    add_number(f, interface, "tx_packets", s.tx_packets);
    add_number(f, interface, "rx_errors", s.rx_errors);
    add_number(f, interface, "tx_errors", s.tx_errors);
    add_number(f, interface, "rx_dropped", s.rx_dropped);
    add_number(f, interface, "tx_dropped", s.tx_dropped);
    add_number(f, interface, "rx_crc_errors", s.rx_crc_errors);
    add_number(f, interface, "rx_missed_errors", s.rx_missed_errors);
}

static void add_address(struct facts *f, const char *interface, const uint8_t *a)
{
    char text[32];

    (void)snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", a[0], a[1], a[2], a[3], a[4],
                   a[5]);
    add(f, interface, "address", text);
}

static void add_settings(struct facts *f, const char *interface)
{
    static const char *const settings[] = {"rp_filter", "forwarding"};
    char path[128], value[16];

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        (void)snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/%s", interface, settings[i]);
        if (facts_read_line(path, value, sizeof value))
            add(f, interface, settings[i], value);
    }
}

static void add_link(const struct nlmsghdr *m, void *context)
{
    struct list *l = context;
    const struct ifinfomsg *info = NLMSG_DATA(m);
    struct attributes a = {.name = NULL};

    if (m->nlmsg_type != RTM_NEWLINK || m->nlmsg_len < NLMSG_LENGTH(sizeof *info) ||
        l->count == INTERFACES_MOST)
        return;
    read_attributes(m, &a);
    if (a.name == NULL || strchr(a.name, ' ') != NULL || strchr(a.name, '/') != NULL)
        return;
    l->count++;
    if (a.mtu != NULL)
        add_number(l->facts, a.name, "mtu", *a.mtu);
    add(l->facts, a.name, "state", (info->ifi_flags & IFF_UP) != 0 ? "up" : "down");
    if (a.carrier != NULL && (info->ifi_flags & IFF_UP) != 0)
        add(l->facts, a.name, "carrier", *a.carrier != 0 ? "1" : "0");
    if (a.carrier_changes != NULL)
        add_number(l->facts, a.name, "carrier_changes", *a.carrier_changes);
    if (a.address != NULL)
        add_address(l->facts, a.name, a.address);
    if (a.stats != NULL)
        add_stats(l->facts, a.name, a.stats);
    add(l->facts, a.name, "physical", a.kind || info->ifi_type == ARPHRD_LOOPBACK ? "no" : "yes");
    add_settings(l->facts, a.name);
    add_driver(l, a.name);
}

void gather_interfaces(struct facts *f)
{
    struct list l = {.facts = f, .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};

    (void)host_netlink_list(RTM_GETLINK, AF_UNSPEC, add_link, &l);
    if (l.fd >= 0)
        (void)close(l.fd);
}
