/* Limits of this process, and memory of the machine. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/lib/host/gather.h"

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

/* The memory limit of the control group (version 2) of this process, as systemd sets it. */
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

void gather_limits(struct facts *f)
{
    add_limit(f, "files.limit", RLIMIT_NOFILE);
    add_limit(f, "memory.address_limit", RLIMIT_AS);
    add_limit(f, "memory.locked_limit", RLIMIT_MEMLOCK);
    add_open_files(f);
    add_memory(f);
    add_group(f);
}
