/* The kernel and its settings that matter for links. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "daemon/lib/host/gather.h"

#define PROCESSORS_MOST 1024

static void add_settings(struct facts *f)
{
    static const char *const settings[] = {
        "net/ipv4/tcp_slow_start_after_idle",
        "net/ipv4/tcp_mtu_probing",
        "net/ipv4/tcp_congestion_control",
        "net/ipv4/ip_forward",
        "net/ipv4/conf/all/rp_filter",
        "net/ipv4/conf/default/rp_filter",
        "net/core/rmem_max",
        "net/core/wmem_max",
        "vm/overcommit_memory",
    };

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char path[128], name[128];
        (void)snprintf(path, sizeof path, "/proc/sys/%s", settings[i]);
        (void)snprintf(name, sizeof name, "sysctl.%s", settings[i]);
        for (char *c = name; *c != '\0'; c++)
            *c = *c == '/' ? '.' : *c;
        facts_add_file(f, name, path);
    }
}

/* The governors of the processors: "performance", "powersave". A machine may have none. */
static void add_governor(struct facts *f)
{
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    char slow[64] = "", path[96], line[64];
    unsigned others = 0, count = 0;

    if (access("/sys/devices/system/cpu", R_OK | X_OK) != 0) {
        facts_unseen(f, "cpu.governors", "/sys/devices/system/cpu", errno);
        return;
    }
    for (unsigned i = 0; i < PROCESSORS_MOST && i < processors; i++) {
        (void)snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor",
                       i);
        if (!facts_read_line(path, line, sizeof line))
            continue;
        count++;
        if (strcmp(line, "performance") == 0)
            continue;
        others++;
        (void)snprintf(slow, sizeof slow, "%s", line);
    }
    facts_add(f, "cpu.governors", "%u", count);
    if (count > 0)
        facts_add(f, "cpu.governor", "%s", others > 0 ? slow : "performance");
    if (others > 0)
        facts_add(f, "cpu.slow_governors", "%u", others);
}

void gather_system(struct facts *f)
{
    struct utsname u;

    if (uname(&u) == 0) {
        facts_add(f, "system.host", "%s", u.nodename);
        facts_add(f, "system.kernel", "%s", u.release);
        facts_add(f, "system.machine", "%s", u.machine);
    }
    facts_add(f, "system.user", "%u", (unsigned)geteuid());
    facts_add(f, "cpu.count", "%ld", sysconf(_SC_NPROCESSORS_ONLN));
    facts_add_file(f, "cpu.load", "/proc/loadavg");
    add_governor(f);
    add_settings(f);
}
