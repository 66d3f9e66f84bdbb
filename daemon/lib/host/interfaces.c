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

#include "daemon/lib/host/gather.h"
#include "daemon/lib/host/interface_list.h"

#define INTERFACES_MOST 64u

struct list {
    struct facts *facts;
    struct past *past; /* NULL: there is none */
    int fd;            /* for questions to drivers; -1: none */
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

/* --- facts --- */

static void add_stats(struct facts *f, const char *interface, const struct rtnl_link_stats64 *s)
{
    add_number(f, interface, "rx_packets", s->rx_packets);
    add_number(f, interface, "tx_packets", s->tx_packets);
    add_number(f, interface, "rx_errors", s->rx_errors);
    add_number(f, interface, "tx_errors", s->tx_errors);
    add_number(f, interface, "rx_dropped", s->rx_dropped);
    add_number(f, interface, "tx_dropped", s->tx_dropped);
    add_number(f, interface, "rx_crc_errors", s->rx_crc_errors);
    add_number(f, interface, "rx_missed_errors", s->rx_missed_errors);
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
    char path[128], name[64];

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        (void)snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/%s", interface, settings[i]);
        (void)snprintf(name, sizeof name, "interface.%s.%s", interface, settings[i]);
        facts_add_file(f, name, path);
    }
}

static void add_interface(const struct interface *i, void *context)
{
    struct list *l = context;

    if (l->count++ >= INTERFACES_MOST)
        return;
    if (i->mtu != NULL)
        add_number(l->facts, i->name, "mtu", *i->mtu);
    add(l->facts, i->name, "state", i->is_up ? "up" : "down");
    if (i->carrier != NULL && i->is_up)
        add(l->facts, i->name, "carrier", *i->carrier != 0 ? "1" : "0");
    if (i->carrier_changes != NULL)
        add_number(l->facts, i->name, "carrier_changes", *i->carrier_changes);
    if (i->address != NULL)
        add_address(l->facts, i->name, i->address);
    if (i->has_stats)
        add_stats(l->facts, i->name, &i->stats);
    if (i->has_stats && l->past != NULL)
        past_add(l->past, l->facts, i->name, i->index, &i->stats);
    add(l->facts, i->name, "physical", i->physical ? "yes" : "no");
    add_settings(l->facts, i->name);
    add_driver(l, i->name);
}

void gather_interfaces(struct facts *f, struct past *past)
{
    struct list l = {.facts = f, .past = past, .fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};

    if (interfaces_list(add_interface, &l) != 0)
        facts_add(f, "unseen.interfaces", "the kernel did not list all interfaces");
    else if (l.count > INTERFACES_MOST)
        facts_add(f, "unseen.interfaces", "only %u of %u interfaces are told", INTERFACES_MOST,
                  l.count);
    if (l.fd >= 0)
        (void)close(l.fd);
}
