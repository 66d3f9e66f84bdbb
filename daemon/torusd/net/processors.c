#include "daemon/torusd/net/processors.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define LINE_SIZE 4096u
#define PROCESSORS_LEAST 4.0
#define THREADS_MOST 4u

/* Reads the first line of a file, without its end. Returns false if there is none. */
static bool read_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");
    const bool have = file != NULL && fgets(line, size, file) != NULL;

    if (file != NULL)
        (void)fclose(file);
    if (have)
        line[strcspn(line, "\n")] = '\0';
    return have;
}

/* Reads a number from a file of a group. Returns false if there is none: "max" is none. */
static bool read_number(const char *group, const char *name, double *number, double *period)
{
    char path[PATH_MAX], line[64];

    if (snprintf(path, sizeof path, "%s/%s", group, name) >= (int)sizeof path ||
        !read_line(path, line, sizeof line))
        return false;
    return sscanf(line, "%lf %lf", number, period) >= 1;
}

/* Returns the quota of one group in processors, or `most` if it has none or a larger one. */
static double quota_of(const char *group, double most)
{
    double quota = 0, period = 0, none;

    if (!read_number(group, "cpu.max", &quota, &period) &&
        !(read_number(group, "cpu.cfs_quota_us", &quota, &none) &&
          read_number(group, "cpu.cfs_period_us", &period, &none)))
        return most;
    return quota > 0 && period > 0 && quota / period < most ? quota / period : most;
}

/* Returns the least quota of a group and those above it, below the folder `mount`. In a container, the name may be that of
 * another place: then the folder itself has the quota. */
static double least_quota(const char *mount, char *name, double most)
{
    char group[PATH_MAX];

    for (char *end = name + strlen(name); end != NULL; end = strrchr(name, '/')) {
        *end = '\0';
        if (snprintf(group, sizeof group, "%s%s", mount, name) < (int)sizeof group)
            most = quota_of(group, most);
    }
    return most;
}

/* Whether the controllers of a line of /proc/self/cgroup, separated by commas, include `cpu`. */
static bool includes_cpu(char *controllers)
{
    char *one;

    while ((one = strsep(&controllers, ",")) != NULL)
        if (strcmp(one, "cpu") == 0)
            return true;
    return false;
}

/* As processors_usable(), for the groups of a line "4:cpu,cpuacct:/name" or "0::/name" of /proc/self/cgroup. */
static double quota_of_line(const char *root, char *line, double most)
{
    char mount[PATH_MAX];

    line[strcspn(line, "\n")] = '\0';
    (void)strsep(&line, ":");
    char *controllers = strsep(&line, ":"), *name = line;
    if (controllers == NULL || name == NULL)
        return most;
    if (snprintf(mount, sizeof mount, "%s/sys/fs/cgroup%s%s", root,
                 controllers[0] != '\0' ? "/" : "", controllers) >= (int)sizeof mount)
        return most;
    return controllers[0] == '\0' || includes_cpu(controllers) ? least_quota(mount, name, most)
                                                               : most;
}

double processors_usable(const char *root)
{
    char path[PATH_MAX], line[LINE_SIZE];
    cpu_set_t set;
    double most = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

    FILE *file = snprintf(path, sizeof path, "%s/proc/self/cgroup", root) < (int)sizeof path
                     ? fopen(path, "re")
                     : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        most = quota_of_line(root, line, most);
    if (file != NULL)
        (void)fclose(file);
    return most;
}

/* Reads the name of a process. Returns false if it is gone. */
static bool name_of(const char *proc, const char *process, char *name, int size)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s/comm", proc, process) < (int)sizeof path &&
           read_line(path, name, size);
}

unsigned processors_sharing(const char *proc)
{
    char own[64], other[64];
    const struct dirent *entry;
    unsigned count = 0;
    DIR *folder = opendir(proc);

    if (folder != NULL && name_of(proc, "self", own, sizeof own))
        while ((entry = readdir(folder)) != NULL)
            count += entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
                     name_of(proc, entry->d_name, other, sizeof other) && strcmp(own, other) == 0;
    if (folder != NULL)
        (void)closedir(folder);
    return count > 0 ? count : 1;
}

unsigned processors_io_threads(double processors, unsigned sharing, unsigned ports)
{
    const double own = processors / sharing;
    const unsigned half = (unsigned)(own / 2);
    unsigned most = 2 * ports < THREADS_MOST ? 2 * ports : THREADS_MOST;

    return own < PROCESSORS_LEAST ? 0 : half < most ? half : most;
}
