#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/lib/host/facts.h"
#include "daemon/lib/host/run.h"

/* Whether something keeps the clock right. */

/* Whether a filter of system calls may end the process that asks about the clock. */
static bool is_filtered(void)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[128];
    unsigned mode = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Seccomp: %u", &mode) == 1)
            break;
    if (file != NULL)
        (void)fclose(file);
    return mode != 0;
}

static bool is_unsynchronised(int state, const struct timex *t)
{
    return state == TIME_ERROR || (t->status & STA_UNSYNC) != 0;
}

/* Asks in a process of its own, which such a filter may end. Returns what adjtimex() returns, with its errno; EACCES:
 * the filter has ended the process. It is not a fork(): that would copy the tables of all the memory of the daemon. */
static int ask_apart(bool *unsynchronised)
{
    enum { UNSYNCHRONISED = 200, KEPT = 201 }; /* errors are smaller */
    struct timex t = {0};
    int status = 0;
    const pid_t child = vfork();

    if (child == 0) {
        const int state = adjtimex(&t);
        if (state < 0)
            _exit(errno);
        _exit(is_unsynchronised(state, &t) ? UNSYNCHRONISED : KEPT);
    }
    if (child < 0)
        return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    errno = WIFEXITED(status) ? WEXITSTATUS(status) : EACCES;
    *unsynchronised = errno == UNSYNCHRONISED;
    return errno == UNSYNCHRONISED || errno == KEPT ? 0 : -1;
}

static int ask_clock(bool *unsynchronised)
{
    struct timex t = {0};

    if (is_filtered())
        return ask_apart(unsynchronised);
    const int state = adjtimex(&t);
    *unsynchronised = is_unsynchronised(state, &t);
    return state;
}

/* The parts: each adds its facts. */
void gather_clock(struct facts *f)
{
    struct timespec now;
    bool unsynchronised;

    if (ask_clock(&unsynchronised) >= 0)
        facts_add(f, "clock.synchronised", "%s", unsynchronised ? "no" : "yes");
    else if (access("/run/systemd/timesync/synchronized", F_OK) == 0)
        facts_add(f, "clock.synchronised", "yes");
    else
        facts_add(
            f, "unseen.clock.synchronised",
            "torusd may not ask_clock for the state of the clock (ProtectClock=yes in its unit)");
    if (clock_gettime(CLOCK_REALTIME, &now) == 0)
        facts_add(f, "clock.seconds", "%lld", (long long)now.tv_sec);
}

/* Room on the disks that the daemon uses. */

static void add_folder(struct facts *f, unsigned number, const char *kind, const char *path)
{
    struct statvfs s;
    char name[64];

#define ADD(key, ...)                                                                              \
    do {                                                                                           \
        (void)snprintf(name, sizeof name, "disk.%u.%s", number, key);                              \
        facts_add(f, name, __VA_ARGS__);                                                           \
    } while (0)
    ADD("kind", "%s", kind);
    ADD("path", "%s", path);
    if (statvfs(path, &s) != 0) {
        ADD("error", "%m");
        return;
    }
    ADD("total_bytes", "%llu", (unsigned long long)s.f_blocks * s.f_frsize);
    ADD("free_bytes", "%llu", (unsigned long long)s.f_bavail * s.f_frsize);
    ADD("inodes", "%llu", (unsigned long long)s.f_files);
    ADD("free_inodes", "%llu", (unsigned long long)s.f_favail);
    ADD("read_only", "%s", (s.f_flag & ST_RDONLY) != 0 ? "yes" : "no");
    ADD("writable", "%s", access(path, W_OK | X_OK) == 0 ? "yes" : "no");
#undef ADD
}

static void gather_disks(struct facts *f, const struct gather_setup *setup)
{
    for (size_t i = 0; i < setup->folders; i++)
        add_folder(f, (unsigned)i, setup->kind[i], setup->folder[i]);
}

/* Limits of this process, and memory of the machine. */

static void add_limit(struct facts *f, const char *name, int resource)
{
    struct rlimit limit;

    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        facts_add(f, name, "unlimited");
    else
        facts_add(f, name, "%llu", (unsigned long long)limit.rlim_cur);
}

static void add_open_files(struct facts *f)
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;

    if (folder == NULL) {
        facts_unseen(f, "files.open", "/proc/self/fd", errno);
        return;
    }
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    facts_add(f, "files.open", "%u",
              count > 3 ? count - 3 : 0); /* without ".", ".." and this one */
}

static void add_memory(struct facts *f)
{
    static const char *const wanted[][2] = {{"MemTotal:", "memory.total_bytes"},
                                            {"MemAvailable:", "memory.available_bytes"},
                                            {"SwapTotal:", "memory.swap_bytes"}};
    FILE *file = fopen("/proc/meminfo", "re");
    char line[128], key[64];
    unsigned long long kib;

    if (file == NULL)
        facts_unseen(f, "memory.available_bytes", "/proc/meminfo", errno);
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
            if (sscanf(line, "%63s %llu", key, &kib) == 2 && strcmp(key, wanted[i][0]) == 0)
                facts_add(f, wanted[i][1], "%llu", kib * 1024);
    if (file != NULL)
        (void)fclose(file);
}

/* Adds the memory limit of the control group (version 2) of this process, which systemd may have set. */
static void add_group(struct facts *f)
{
    char line[512], path[640];

    if (!facts_read_line("/proc/self/cgroup", line, sizeof line) || strncmp(line, "0::/", 4) != 0)
        return;
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", line + 3);
    if (access(path, F_OK) != 0 && errno == ENOENT)
        return;                                  /* no limit can be set there */
    facts_add_file(f, "memory.group_max", path); /* "max": none */
    (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", line + 3);
    facts_add_file(f, "memory.group_bytes", path);
}

static void gather_limits(struct facts *f)
{
    add_limit(f, "files.limit", RLIMIT_NOFILE);
    add_limit(f, "memory.address_limit", RLIMIT_AS);
    add_limit(f, "memory.locked_limit", RLIMIT_MEMLOCK);
    add_open_files(f);
    add_memory(f);
    add_group(f);
}

/* The kernel and its settings that matter for links. */

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

static void gather_system(struct facts *f)
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

/* Whether a firewall drops packets that this host should forward. Only root may read the rules; for others, an
 * interface of Docker, whose daemon sets the policy DROP, is the only sign. */

#define RULES_MOST (64u * 1024u)
#define PATIENCE_MS 2000

#define PASS "TORUS-ROUTED" /* the chain of torus-routed (daemon/torus-routed/kernel/firewall.c) */

/* Whether a text occurs before `end`. */
static bool has(const char *begin, const char *end, const char *text)
{
    const char *at = strstr(begin, text);

    return at != NULL && at < end;
}

/* Whether a table of nft, "table ip filter {\n ... }", drops what is forwarded: "type filter hook forward ...; policy
 * drop;". */
static bool drops(const char *table, const char *table_end)
{
    if (has(table, table_end, "jump " PASS))
        return false;
    for (const char *hook = strstr(table, "hook forward"); hook != NULL && hook < table_end;
         hook = strstr(hook + 1, "hook forward"))
        if (has(hook, hook + strcspn(hook, "\n"), "policy drop"))
            return true;
    return false;
}

const char *firewall_policy(const char *rules)
{
    const char *forward = strstr(rules, ":FORWARD "), *next;

    if (forward != NULL) /* ":FORWARD DROP [0:0]" of iptables-save */
        return strncmp(forward, ":FORWARD DROP", 13) == 0 && strstr(rules, "-j " PASS) == NULL
                   ? "drop"
                   : "accept";
    for (const char *table = rules; *table != '\0'; table = next) {
        next = strstr(table + 1, "\ntable ");
        if (next == NULL)
            next = table + strlen(table);
        if (drops(table, next))
            return "drop";
    }
    return "accept";
}

const char *firewall_look(bool may)
{
    static const char *const programs[][5] = {{"nft", "list", "ruleset", NULL},
                                              {"iptables-save", "-t", "filter", NULL}};
    char *rules = may ? malloc(RULES_MOST) : NULL;
    const char *policy = "unknown";
    int status;

    for (size_t i = 0; rules != NULL && i < sizeof programs / sizeof *programs; i++) {
        /* Without any rule, they print nothing. */
        if (!host_run(programs[i], PATIENCE_MS, rules, RULES_MOST, &status) && status != 0)
            continue;
        policy = firewall_policy(rules);
        if (strcmp(policy, "drop") == 0)
            break;
    }
    free(rules);
    return policy;
}

/* The parts: each adds its facts. */
void gather_firewall(struct facts *f)
{
    facts_add(f, "firewall.docker", "%s", if_nametoindex("docker0") != 0 ? "yes" : "no");
    const char *policy = firewall_look(geteuid() == 0);

    facts_add(f, "firewall.forward", "%s", policy);
    if (strcmp(policy, "unknown") == 0)
        facts_add(f, "unseen.firewall.forward",
                  geteuid() == 0 ? "neither nft nor iptables-save prints the rules"
                                 : "only root can read the rules of the firewall");
}

int processor_open(void)
{
    return open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

void processor_close(int file)
{
    if (file >= 0)
        (void)close(file);
}

void processor_read(int file, uint64_t *used, uint64_t *delayed)
{
    struct timespec now;
    char text[128];
    ssize_t length = file >= 0 ? pread(file, text, sizeof text - 1, 0) : -1;
    unsigned long long run, wait;

    *used = *delayed = 0;
    if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0)
        *used = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    if (length <= 0)
        return;
    text[length] = '\0';
    if (sscanf(text, "%llu %llu", &run, &wait) == 2)
        *delayed = wait;
}

/* Interfaces come last: a machine may have so many of them that some are left out. The facts do not say which. */
void gather_facts(struct facts *f, const char *settings, const struct gather_setup *setup)
{
    facts_begin(f);
    facts_add_lines(f, settings);
    gather_system(f);
    gather_clock(f);
    gather_limits(f);
    gather_disks(f, setup);
    gather_ip_routes(f);
    gather_diverted_cables(f, settings);
    gather_firewall(f);
    gather_interfaces(f, setup->past);
}
