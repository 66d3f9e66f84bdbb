#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/netlink.h"

/* The interfaces that the kernel lists. */

struct interface {
    const char *name; /* without blanks and slashes */
    int index;
    bool is_up, physical;
    const uint32_t *mtu, *carrier_changes; /* NULL: not told; the same for the next two */
    const uint8_t *carrier;
    const uint8_t *address; /* 6 bytes */
    bool has_stats;
    struct rtnl_link_stats64 stats; /* up to tx_compressed */
};

/* Older kernels have less of it. */
#define STATS_SIZE offsetof(struct rtnl_link_stats64, rx_compressed)

static int read_attribute(const struct nlattr *a, void *context)
{
    struct interface *i = context;
    const void *data = mnl_attr_get_payload(a);
    const size_t size = mnl_attr_get_payload_len(a);
    const unsigned type = mnl_attr_get_type(a);

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
    else if (type == IFLA_STATS64 && size >= STATS_SIZE)
        i->has_stats = memcpy(&i->stats, data, STATS_SIZE) != NULL; /* it may not be aligned */
    else if (type == IFLA_LINKINFO) /* a virtual interface of some kind */
        i->physical = false;
    return MNL_CB_OK;
}

struct listing {
    void (*each)(const struct interface *interface, void *context);
    void *context;
};

static int list_link(const struct nlmsghdr *m, void *context)
{
    const struct listing *l = context;
    const struct ifinfomsg *info = mnl_nlmsg_get_payload(m);
    struct interface i = {.index = info->ifi_index,
                          .is_up = (info->ifi_flags & IFF_UP) != 0,
                          .physical = info->ifi_type != ARPHRD_LOOPBACK};
    (void)mnl_attr_parse(m, sizeof *info, read_attribute, &i);
    if (i.name != NULL && strchr(i.name, ' ') == NULL && strchr(i.name, '/') == NULL)
        l->each(&i, l->context);
    return MNL_CB_OK;
}

/* Calls each() for the interfaces; all is valid during the call. Returns 0, or -1 if the kernel does not tell all of
 * them. */
static int interfaces_list(void (*each)(const struct interface *interface, void *context),
                           void *context)
{
    struct listing l = {each, context};

    return netlink_list(RTM_GETLINK, AF_UNSPEC, sizeof(struct ifinfomsg), list_link, &l);
}

enum { RX_PACKETS, TX_PACKETS, RX_ERRORS, TX_ERRORS, RX_DROPPED, TX_DROPPED, COUNTERS };

_Static_assert((unsigned)COUNTERS <= LAST_HOUR_VALUES, "all counters are kept");

struct past *past_new(void)
{
    struct past *p = calloc(1, sizeof *p);

    if (p != NULL && pthread_mutex_init(&p->lock, NULL) != 0) {
        free(p);
        return NULL;
    }
    return p;
}

void past_free(struct past *p)
{
    if (p == NULL)
        return;
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Returns the entry of an interface. If another interface had this name before, the entry is cleared first. Returns NULL if all
 * entries are in use. */
static struct past_interface *find_past(struct past *p, const char *name, int index)
{
    struct past_interface *found = NULL;

    for (unsigned i = 0; found == NULL && i < p->count; i++)
        if (strcmp(p->interface[i].name, name) == 0)
            found = &p->interface[i];
    if (found == NULL && p->count < PAST_INTERFACES)
        found = &p->interface[p->count++];
    if (found == NULL || (found->index == index && found->name[0] != '\0'))
        return found;
    *found = (struct past_interface){.index = index};
    (void)snprintf(found->name, sizeof found->name, "%s", name);
    return found;
}

static uint64_t note(struct past *p, const char *name, int index, const struct rtnl_link_stats64 *s,
                     uint64_t risen[LAST_HOUR_VALUES])
{
    const uint64_t value[LAST_HOUR_VALUES] = {
        [RX_PACKETS] = s->rx_packets, [TX_PACKETS] = s->tx_packets, [RX_ERRORS] = s->rx_errors,
        [TX_ERRORS] = s->tx_errors,   [RX_DROPPED] = s->rx_dropped, [TX_DROPPED] = s->tx_dropped};
    const uint64_t now = now_ns();
    uint64_t time = 0;

    (void)pthread_mutex_lock(&p->lock);
    struct past_interface *interface = find_past(p, name, index);
    if (interface != NULL) {
        last_hour_note(&interface->hour, now, value);
        time = last_hour_risen(&interface->hour, now, value, risen);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return time;
}

static void note_interface(const struct interface *i, void *context)
{
    uint64_t risen[LAST_HOUR_VALUES];

    if (i->has_stats)
        (void)note(context, i->name, i->index, &i->stats, risen);
}

void past_note(struct past *p)
{
    (void)interfaces_list(note_interface, p);
}

void past_add(struct past *p, struct facts *f, const char *name, int index,
              const struct rtnl_link_stats64 *stats)
{
    static const char *const keys[COUNTERS] = {"rx_packets", "tx_packets", "rx_errors",
                                               "tx_errors",  "rx_dropped", "tx_dropped"};
    uint64_t risen[LAST_HOUR_VALUES];
    const uint64_t time = note(p, name, index, stats, risen);
    char fact[64];

    if (time == 0)
        return;
    (void)snprintf(fact, sizeof fact, "interface.%s.hour_ms", name);
    facts_add(f, fact, "%" PRIu64, time / 1000000 + 1);
    for (unsigned i = 0; i < COUNTERS; i++) {
        (void)snprintf(fact, sizeof fact, "interface.%s.hour_%s", name, keys[i]);
        facts_add(f, fact, "%" PRIu64, risen[i]);
    }
}

/* Interfaces: what the kernel lists, and what their drivers say. Asking needs no privileges. (/sys is not asked: in a
 * network namespace it may show the interfaces of another one.) */

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

/* Link modes of ethtool and their speeds, those of a speed from the first bit to the last. */
static const struct {
    uint8_t first, last;
    uint32_t mbit;
} link_modes[] = {{0, 1, 10},       {2, 3, 100},      {4, 5, 1000},     {12, 12, 10000},
                  {15, 15, 2500},   {17, 17, 1000},   {18, 20, 10000},  {21, 22, 20000},
                  {23, 26, 40000},  {27, 30, 56000},  {31, 33, 25000},  {34, 35, 50000},
                  {36, 39, 100000}, {40, 40, 50000},  {41, 41, 1000},   {42, 46, 10000},
                  {47, 47, 2500},   {48, 48, 5000},   {52, 56, 50000},  {57, 61, 100000},
                  {62, 66, 200000}, {67, 68, 100},    {69, 73, 400000}, {75, 79, 100000},
                  {80, 84, 200000}, {85, 89, 400000}, {90, 91, 100}};

#define MASK_WORDS 127u /* most that the kernel may tell */

/* Adds the fastest speed that both the card and the other end of its cable can have. */
static void add_most_speed(const struct list *l, const char *interface)
{
    struct {
        struct ethtool_link_settings settings;
        uint32_t masks[3 * MASK_WORDS]; /* supported ones first */
    } c = {.settings.cmd = ETHTOOL_GLINKSETTINGS};
    uint32_t most = 0;

    /* The first answer is the number of words, below 0. */
    if (!ask_driver(l->fd, interface, &c) || c.settings.link_mode_masks_nwords >= 0)
        return;
    c.settings.link_mode_masks_nwords = (int8_t)-c.settings.link_mode_masks_nwords;
    c.settings.cmd = ETHTOOL_GLINKSETTINGS;
    const unsigned bits = 32u * (unsigned)c.settings.link_mode_masks_nwords;
    if (!ask_driver(l->fd, interface, &c) || c.settings.link_mode_masks_nwords <= 0)
        return;
    for (size_t i = 0; i < sizeof link_modes / sizeof *link_modes; i++)
        for (unsigned bit = link_modes[i].first; bit <= link_modes[i].last && bit < bits; bit++)
            if ((c.masks[bit / 32] & 1u << bit % 32) != 0 && link_modes[i].mbit > most)
                most = link_modes[i].mbit;
    if (most > 0)
        add_number(l->facts, interface, "speed_most_mbit", most);
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
    add_most_speed(l, interface);
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
