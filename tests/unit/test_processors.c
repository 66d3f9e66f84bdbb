/* How many processors a daemon has for itself: quotas of cgroup v1 and v2, and other daemons. */
#include "daemon/torusd/net/processors.h"

#include <unistd.h>

#include "folder_fixture.h"
#include "tests/support/cmocka.h"

/* Makes a file of a folder that stands for /, and the folders above it. */
static void make(void **state, const char *path, const char *text)
{
    char folder[FIXTURE_PATH];

    for (const char *end = strchr(path, '/'); end != NULL; end = strchr(end + 1, '/')) {
        (void)snprintf(folder, sizeof folder, "%.*s", (int)(end - path), path);
        if (access(at(state, folder), F_OK) != 0)
            make_folder(at(state, folder));
    }
    make_file(at(state, path), text, strlen(text));
}

static double usable(void **state)
{
    char root[FIXTURE_PATH];

    (void)snprintf(root, sizeof root, "%s", at(state, "."));
    return processors_usable(root);
}

static void check_quota(double found, double wanted)
{
    assert_true(found > wanted - 1e-9 && found < wanted + 1e-9);
}

FOLDER_TEST(without_quotas_all_processors_are_usable)
{
    const double all = usable(state);

    assert_true(all >= 1);
    make(state, "proc/self/cgroup", "1:cpuset:/a\nnothing\n4:cpu,cpuacct\n0::/a/b\n");
    make(state, "sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
    make(state, "sys/fs/cgroup/cpuset/a/cpu.max", "1000 100000\n");
    check_quota(usable(state), all);
}

FOLDER_TEST(the_least_quota_of_the_groups_above_counts)
{
    make(state, "proc/self/cgroup", "0::/a/b/c\n");
    make(state, "sys/fs/cgroup/a/b/c/cpu.max", "max 100000\n");
    make(state, "sys/fs/cgroup/a/b/cpu.max", "25000 100000\n");
    make(state, "sys/fs/cgroup/a/cpu.max", "50000 100000\n");
    check_quota(usable(state), 0.25);
}

FOLDER_TEST(version_1_has_quotas_too)
{
    make(state, "proc/self/cgroup", "7:memory:/x\n4:cpu,cpuacct:/x/y\n0::/\n");
    make(state, "sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_quota_us", "-1\n");
    make(state, "sys/fs/cgroup/cpu,cpuacct/x/y/cpu.cfs_period_us", "100000\n");
    make(state, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us", "5000\n");
    make(state, "sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us", "10000\n");
    check_quota(usable(state), 0.5);
}

/* In a container, the group may have the name that it has outside. */
FOLDER_TEST(a_group_whose_folder_is_not_there)
{
    make(state, "proc/self/cgroup", "0::/system.slice/outside\n");
    make(state, "sys/fs/cgroup/cpu.max", "30000 100000\n");
    check_quota(usable(state), 0.3);
}

FOLDER_TEST(processes_of_the_same_name_share_the_processors)
{
    char proc[FIXTURE_PATH];

    (void)snprintf(proc, sizeof proc, "%s", at(state, "."));
    assert_int_equal(processors_sharing(proc), 1);
    assert_int_equal(processors_sharing("/none"), 1);
    make(state, "self/comm", "torusd\n");
    make(state, "1/comm", "init\n");
    make(state, "200/comm", "torusd\n");
    make(state, "3000/comm", "torusd\n");
    make(state, "3001/comm", "torusd-disco\n");
    make(state, "4000/stat", "gone");
    make(state, "bus/comm", "torusd\n");
    assert_int_equal(processors_sharing(proc), 2);
    assert_in_range(processors_sharing("/proc"), 1, 1000);
}

TEST(threads_by_processors)
{
    static const struct {
        double processors;
        unsigned sharing, ports, threads;
    } cases[] = {{1, 1, 4, 0},  {2, 1, 4, 0},  {3.9, 1, 4, 0}, {4, 1, 4, 2},
                 {6, 1, 4, 3},  {16, 1, 4, 4}, {16, 4, 4, 2},  {16, 5, 4, 0},
                 {64, 1, 1, 2}, {64, 1, 0, 0}, {0.5, 16, 4, 0}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            processors_io_threads(cases[i].processors, cases[i].sharing, cases[i].ports),
            cases[i].threads);
}
