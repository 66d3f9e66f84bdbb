#include "daemon/lib/discovery/interfaces.h"

#include <errno.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#ifndef IFF_LOWER_UP
#define IFF_LOWER_UP 0x10000u /* <linux/if.h>, which cannot be included beside <net/if.h> */
#endif

/* Copies the next name of a list, and moves *at behind it. Returns false at the end of the list. */
static bool next_name(const char **at, char name[IFNAMSIZ])
{
    size_t length = strcspn(*at, ",");

    if (length == 0)
        return false;
    (void)snprintf(name, IFNAMSIZ, "%.*s", (int)(length < IFNAMSIZ ? length : IFNAMSIZ - 1), *at);
    *at += length;
    *at += **at == ',' ? 1 : 0;
    return true;
}

int interfaces_check(const char *names, struct error *e)
{
    const char *at = names;
    char name[IFNAMSIZ];
    unsigned count = 0;

    if (strcmp(names, "all") == 0)
        return 0;
    while (*at != '\0') {
        size_t length = strcspn(at, ",");
        if (length >= IFNAMSIZ || !next_name(&at, name) || !interface_name_is_valid(name))
            return error_set(e, ERROR_USAGE,
                             "interfaces \"%.60s\" is neither all nor a list such as eth1,eth2",
                             names);
        if (strcmp(name, "lo") == 0)
            return error_set(e, ERROR_USAGE, "interface lo has no cable: name other interfaces");
        count++;
    }
    if (count == 0 || count > DISCOVERY_INTERFACES_MOST)
        return error_set(e, ERROR_USAGE, "%u interfaces are named, between 1 and %u are possible",
                         count, DISCOVERY_INTERFACES_MOST);
    return 0;
}

/* Whether sysfs has this entry for the interface. */
static bool has_entry(const char *name, const char *entry)
{
    char path[128];

    (void)snprintf(path, sizeof path, "/sys/class/net/%s/%s", name, entry);
    return access(path, F_OK) == 0;
}

static bool is_wanted(const char *names, const char *name)
{
    const char *at = names;
    char one[IFNAMSIZ];

    if (strcmp(names, "all") == 0)
        return has_entry(name, "device") && !has_entry(name, "wireless") &&
               !has_entry(name, "phy80211");
    while (next_name(&at, one))
        if (strcmp(one, name) == 0)
            return true;
    return false;
}

/* Asks the driver for the rate of the link. Returns Mbit/s, or 0: unknown. */
static uint32_t speed_of(int fd, const char *name)
{
    struct ethtool_cmd command = {.cmd = ETHTOOL_GSET};
    struct ifreq request = {0};
    uint32_t speed;

    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    request.ifr_data = (void *)&command;
    if (ioctl(fd, SIOCETHTOOL, &request) != 0)
        return 0;
    speed = (uint32_t)command.speed_hi << 16 |
            command.speed; /* ethtool_cmd_speed() shifts a bit into the sign */
    return speed == UINT16_MAX || speed == UINT32_MAX ? 0 : speed;
}

static uint32_t mtu_of(int fd, const char *name)
{
    struct ifreq request = {0};

    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    return ioctl(fd, SIOCGIFMTU, &request) == 0 ? (uint32_t)request.ifr_mtu : 0;
}

static bool has_link_local(const struct ifaddrs *all, const char *name)
{
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next)
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_INET6 &&
            strcmp(i->ifa_name, name) == 0 &&
            IN6_IS_ADDR_LINKLOCAL(
                &((const struct sockaddr_in6 *)(const void *)i->ifa_addr)->sin6_addr))
            return true;
    return false;
}

/* Writes the name of the bridge or bond that the interface is a port of. */
static void find_master(const char *name, char out[IFNAMSIZ])
{
    char path[64 + IFNAMSIZ], target[512];
    const char *slash;
    ssize_t length;

    out[0] = '\0';
    (void)snprintf(path, sizeof path, "/sys/class/net/%s/master", name);
    length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = '\0';
    slash = strrchr(target, '/');
    slash = slash != NULL ? slash + 1 : target;
    if (interface_name_is_valid(slash))
        (void)strcpy(out, slash);
}

static void fill(struct interface_state *s, const struct ifaddrs *all, const struct ifaddrs *one,
                 int fd)
{
    const struct sockaddr_ll *link = (const struct sockaddr_ll *)(const void *)one->ifa_addr;

    *s = (struct interface_state){.index = (unsigned)link->sll_ifindex,
                                  .up = (one->ifa_flags & IFF_UP) != 0,
                                  .carrier = (one->ifa_flags & IFF_LOWER_UP) != 0,
                                  .ipv6 = has_link_local(all, one->ifa_name),
                                  .mtu = mtu_of(fd, one->ifa_name)};
    (void)snprintf(s->name, sizeof s->name, "%s", one->ifa_name);
    memcpy(s->mac, link->sll_addr, MAC_SIZE);
    find_master(s->name, s->member_of);
    s->speed_mbit = s->carrier ? speed_of(fd, one->ifa_name) : 0;
}

unsigned interfaces_read(const char *names, struct interface_state *list)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifaddrs *all;
    unsigned count = 0;

    if (fd < 0)
        return 0;
    if (getifaddrs(&all) != 0) {
        (void)close(fd);
        return 0;
    }
    for (const struct ifaddrs *i = all; i != NULL && count < DISCOVERY_INTERFACES_MOST;
         i = i->ifa_next)
        if (i->ifa_addr != NULL && i->ifa_addr->sa_family == AF_PACKET &&
            (i->ifa_flags & IFF_LOOPBACK) == 0 && interface_name_is_valid(i->ifa_name) &&
            ((const struct sockaddr_ll *)(const void *)i->ifa_addr)->sll_hatype == ARPHRD_ETHER &&
            is_wanted(names, i->ifa_name))
            fill(&list[count++], all, i, fd);
    freeifaddrs(all);
    (void)close(fd);
    return count;
}

int interface_set_up(const char *name)
{
    struct ifreq request = {0};
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), result, error;

    if (fd < 0)
        return -1;
    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    result = ioctl(fd, SIOCGIFFLAGS, &request);
    if (result == 0) {
        request.ifr_flags = (short)(request.ifr_flags | IFF_UP);
        result = ioctl(fd, SIOCSIFFLAGS, &request);
    }
    error = errno;
    (void)close(fd);
    errno = error;
    return result;
}

bool interface_lacks_ipv6(const char *name)
{
    char path[128], text = '1'; /* without the file, the kernel has no IPv6 */
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/sys/net/ipv6/conf/%s/disable_ipv6", name);
    file = fopen(path, "re");
    if (file != NULL) {
        text = (char)fgetc(file);
        (void)fclose(file);
    }
    return text == '1';
}
