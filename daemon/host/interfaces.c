/* Interfaces: what /sys tells of them, and their offloads. Asking for these needs no privileges. */
#include <dirent.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/host/gather.h"

#define INTERFACES_MOST 64u

static void add(struct facts *f, const char *interface, const char *key, const char *value)
{
    char name[64];

    (void)snprintf(name, sizeof name, "interface.%s.%s", interface, key);
    facts_add(f, name, "%s", value);
}

static void add_file(struct facts *f, const char *interface, const char *key, const char *file)
{
    char path[128], value[64];

    (void)snprintf(path, sizeof path, "/sys/class/net/%s/%s", interface, file);
    if (facts_read_line(path, value, sizeof value))
        add(f, interface, key, value);
}

static void add_rp_filter(struct facts *f, const char *interface)
{
    char path[128], value[16];

    (void)snprintf(path, sizeof path, "/proc/sys/net/ipv4/conf/%s/rp_filter", interface);
    if (facts_read_line(path, value, sizeof value))
        add(f, interface, "rp_filter", value);
}

static void add_offload(struct facts *f, int fd, const char *interface, const char *key,
                        uint32_t command)
{
    struct ethtool_value value = {.cmd = command};
    struct ifreq request = {.ifr_data = (void *)&value};

    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    if (ioctl(fd, SIOCETHTOOL, &request) == 0)
        add(f, interface, key, value.data != 0 ? "on" : "off");
}

static void add_driver(struct facts *f, int fd, const char *interface)
{
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq request = {.ifr_data = (void *)&info};

    (void)snprintf(request.ifr_name, sizeof request.ifr_name, "%s", interface);
    if (ioctl(fd, SIOCETHTOOL, &request) != 0)
        return;
    info.driver[sizeof info.driver - 1] = '\0';
    if (info.driver[0] != '\0')
        add(f, interface, "driver", info.driver);
}

static void add_interface(struct facts *f, int fd, const char *interface)
{
    static const char *const files[][2] = {{"mtu", "mtu"},
                                           {"state", "operstate"},
                                           {"carrier", "carrier"},
                                           {"carrier_changes", "carrier_changes"},
                                           {"speed_mbit", "speed"},
                                           {"duplex", "duplex"},
                                           {"address", "address"},
                                           {"rx_packets", "statistics/rx_packets"},
                                           {"tx_packets", "statistics/tx_packets"},
                                           {"rx_errors", "statistics/rx_errors"},
                                           {"tx_errors", "statistics/tx_errors"},
                                           {"rx_dropped", "statistics/rx_dropped"},
                                           {"tx_dropped", "statistics/tx_dropped"},
                                           {"rx_crc_errors", "statistics/rx_crc_errors"},
                                           {"rx_missed_errors", "statistics/rx_missed_errors"}};
    static const struct {
        const char *key;
        uint32_t command;
    } offloads[] = {{"tso", ETHTOOL_GTSO},
                    {"gso", ETHTOOL_GGSO},
                    {"gro", ETHTOOL_GGRO},
                    {"scatter_gather", ETHTOOL_GSG},
                    {"rx_checksum", ETHTOOL_GRXCSUM},
                    {"tx_checksum", ETHTOOL_GTXCSUM}};
    char path[128];

    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        add_file(f, interface, files[i][0], files[i][1]);
    (void)snprintf(path, sizeof path, "/sys/class/net/%s/device", interface);
    add(f, interface, "physical", access(path, F_OK) == 0 ? "yes" : "no");
    add_rp_filter(f, interface);
    for (size_t i = 0; fd >= 0 && i < sizeof offloads / sizeof *offloads; i++)
        add_offload(f, fd, interface, offloads[i].key, offloads[i].command);
    if (fd >= 0)
        add_driver(f, fd, interface);
}

void gather_interfaces(struct facts *f)
{
    DIR *folder = opendir("/sys/class/net");
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const struct dirent *entry;

    for (unsigned count = 0; folder != NULL && count < INTERFACES_MOST;) {
        entry = readdir(folder);
        if (entry == NULL)
            break;
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= IFNAMSIZ ||
            strchr(entry->d_name, ' ') != NULL)
            continue;
        add_interface(f, fd, entry->d_name);
        count++;
    }
    if (folder != NULL)
        (void)closedir(folder);
    if (fd >= 0)
        (void)close(fd);
}
