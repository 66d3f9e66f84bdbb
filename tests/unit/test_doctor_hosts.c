/* What torusctl doctor finds about machines, with made-up facts: keys, clocks, disks, limits, routes, settings. */
#include "client/cli/doctor/doctor.h"
#include "doctor_fixture.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

#define OLD "aaaaaaaaaaaaaaaa"
#define NEW "bbbbbbbbbbbbbbbb"

static struct ring r;

static int begin(void **state)
{
    ring_begin(&r);
    return 0;
}

/* --- keys --- */

static void set_keys(uint32_t node, const char *first, const char *second)
{
    r.keys[node][0] = first;
    r.keys[node][1] = second;
    r.status[node].key_count = second != NULL ? 2 : first != NULL ? 1 : 0;
}

TEST_WITH(begin, NULL, no_keys)
{
    for (uint32_t i = 0; i < RING; i++)
        set_keys(i, NULL, NULL);
    ring_expect(&r, SEVERITY_HINT, "keys", "torusctl key generate", "no node", NULL);
    set_keys(1, OLD, NULL);
    assert_int_equal(ring_count(&r, "keys"), 3);
}

/* Every step of a change of the key, as operating.md describes it. */
TEST_WITH(begin, NULL, change_of_the_key)
{
    set_keys(0, OLD, NEW);
    set_keys(1, OLD, NEW);
    set_keys(2, OLD, NEW);
    ring_expect(&r, SEVERITY_WARNING, "keys", "second_key_file", NEW, "3 of 4", NULL);
    set_keys(3, OLD, NEW);
    ring_expect(&r, SEVERITY_HINT, "keys", "if " NEW " is the new key, swap", "go on",
                "8 ends of links are proved by the first", NULL);
    set_keys(2, NEW, OLD);
    ring_expect(&r, SEVERITY_WARNING, "keys", "swap key_file", "3 prefer the first one, 1", NULL);
    for (uint32_t i = 0; i < RING; i++)
        set_keys(i, NEW, OLD);
    ring_expect(&r, SEVERITY_HINT, "keys", "if it is the old one, remove second_key_file", "go on",
                NULL);
    for (uint32_t i = 0; i < RING; i++)
        set_keys(i, NEW, NULL);
    ring_expect_fine(&r);
}

/* --- clocks --- */

TEST_WITH(begin, NULL, clocks)
{
    r.node[2].clock_offset_us = -90000000;
    ring_expect(&r, SEVERITY_WARNING, "clocks", "set-ntp", "90.000 s behind that of alpha", NULL);
    r.node[2].clock_offset_us = 300000;
    ring_expect(&r, SEVERITY_HINT, "clocks", "set-ntp", "ahead of", NULL);
    r.node[2].clock_error_us = 250000; /* it may be less */
    ring_expect_fine(&r);
    ring_set(&r, 1, "clock.synchronised", "no");
    ring_expect(&r, SEVERITY_HINT, "clocks", "set-ntp", "nothing keeps", NULL);
}

/* --- disks --- */

TEST_WITH(begin, NULL, full_disk)
{
    ring_set(&r, 1, "disk.0.free_bytes", "3000000000");
    ring_expect(&r, SEVERITY_WARNING, "disks", "du -xsh /var/lib/torusd", "2861 MiB left", NULL);
    ring_set(&r, 1, "disk.0.free_bytes", "1000000");
    ring_expect(&r, SEVERITY_ERROR, "disks", "du", "0 MiB left of", NULL);
    /* A small disk that is not full. */
    ring_set(&r, 1, "disk.0.total_bytes", "50000000");
    ring_set(&r, 1, "disk.0.free_bytes", "40000000");
    ring_expect_fine(&r);
}

TEST_WITH(begin, NULL, inodes)
{
    ring_set(&r, 1, "disk.0.free_inodes", "1000");
    ring_expect(&r, SEVERITY_WARNING, "disks", "du --inodes", "1000 more files", NULL);
    ring_set(&r, 1, "disk.0.free_inodes", "0");
    ring_expect(&r, SEVERITY_ERROR, "disks", "du --inodes", "0 more files", NULL);
    ring_set(&r, 1, "disk.0.inodes", "0"); /* a file system without a table of inodes */
    ring_expect_fine(&r);
}

TEST_WITH(begin, NULL, unusable_folder)
{
    ring_set(&r, 1, "disk.0.read_only", "yes");
    ring_expect(&r, SEVERITY_ERROR, "disks", "remount,rw", "read-only", NULL);
    ring_begin(&r);
    ring_set(&r, 1, "disk.0.writable", "no");
    ring_expect(&r, SEVERITY_ERROR, "disks", "chown", "may not write", NULL);
    ring_set(&r, 1, "disk.0.kind", "data_root");
    ring_expect(&r, SEVERITY_HINT, "disks", "chown", "may not write", NULL);
    ring_begin(&r);
    ring_set(&r, 1, "disk.0.error", "No such file or directory");
    ring_expect(&r, SEVERITY_ERROR, "disks", "install -d", "No such file", NULL);
    /* what the unit hides */
    ring_set(&r, 1, "disk.0.kind", "data_root");
    ring_set(&r, 1, "disk.0.path", "/home/alice/shared");
    ring_expect(&r, SEVERITY_ERROR, "disks", "ProtectHome=no", "below a home folder", NULL);
    ring_set(&r, 1, "disk.0.path", "/homes/alice");
    ring_expect(&r, SEVERITY_ERROR, "disks", "install -d", "No such file", NULL);
}

/* --- limits --- */

TEST_WITH(begin, NULL, limits)
{
    ring_set(&r, 0, "files.limit", "80");
    ring_expect(&r, SEVERITY_ERROR, "limits", "LimitNOFILE", "40 of 80", NULL);
    ring_set(&r, 0, "files.limit", "256");
    ring_expect(&r, SEVERITY_WARNING, "limits", "LimitNOFILE", "256", NULL);
    ring_begin(&r);
    ring_set(&r, 3, "memory.available_bytes", "50000000");
    ring_expect(&r, SEVERITY_WARNING, "memory", "set memory = 23MiB", "95 MiB", "47 MiB", NULL);
    ring_begin(&r);
    ring_set(&r, 3, "memory.group_max", "120000000");
    ring_expect(&r, SEVERITY_WARNING, "memory", "MemoryMax=190M", "114 MiB in all", NULL);
}

/* --- routes --- */

static void set_all(const char *fact, const char *value)
{
    for (uint32_t i = 0; i < RING; i++)
        ring_set(&r, i, fact, value);
}

static void have_routes(void)
{
    set_all("ip_routes.interface", "torus0");
    set_all("ip_routes.count", "3");
    set_all("ip_routes.diverted", "0");
}

static void use_routes(void)
{
    have_routes();
    set_all("firewall.forward", "accept");
    set_all("sysctl.net.ipv4.ip_forward", "1");
}

TEST_WITH(begin, NULL, ip_routes)
{
    use_routes();
    ring_expect_fine(&r);
    ring_set(&r, 2, "ip_routes.count", "2");
    ring_expect(&r, SEVERITY_WARNING, "ip routes", "sudo sh gamma.sh up", "2 of 3", NULL);
    ring_set(&r, 2, "ip_routes.count", "0");
    ring_set(&r, 2, "ip_routes.interface", "none");
    ring_expect(&r, SEVERITY_ERROR, "ip routes", "sudo sh gamma.sh up", "no IP routes", NULL);
}

TEST_WITH(begin, NULL, forwarding)
{
    ring_set(&r, 1, "firewall.forward", "drop"); /* nobody forwards */
    ring_expect_fine(&r);
    use_routes();
    ring_set(&r, 1, "firewall.forward", "drop");
    ring_set(&r, 1, "firewall.docker", "yes");
    ring_expect(&r, SEVERITY_ERROR, "firewall", "DOCKER-USER", "drops packets", "Docker", NULL);
    ring_set(&r, 1, "firewall.forward", "unknown");
    ring_expect(&r, SEVERITY_WARNING, "firewall", "sudo torusctl doctor", "Docker runs", NULL);
    ring_set(&r, 1, "firewall.forward", "accept");
    ring_expect_fine(&r);
    ring_set(&r, 1, "sysctl.net.ipv4.ip_forward", "0");
    ring_expect(&r, SEVERITY_ERROR, "forwarding", "ip_forward=1", "forwards no packets", NULL);
    ring_set(&r, 1, "interface.eth0.forwarding", "1");
    ring_set(&r, 1, "interface.eth1.forwarding", "1");
    ring_expect_fine(&r);
    ring_set(&r, 1, "interface.eth1.forwarding", "0");
    ring_expect(&r, SEVERITY_ERROR, "forwarding", "ip_forward=1", "come by eth1", NULL);
    ring_set(&r, 1, "sysctl.net.ipv4.ip_forward", "1");
    ring_expect(&r, SEVERITY_ERROR, "forwarding", "conf.eth1.forwarding=1", "come by eth1", NULL);
}

static void use_routed(void)
{
    have_routes();
    set_all("ip_routes.by", "torus-routed");
    set_all("firewall.forward", "accept");
    set_all("interface.eth0.forwarding", "1");
    set_all("interface.eth1.forwarding", "1");
}

TEST_WITH(begin, NULL, torus_routed)
{
    use_routed(); /* the interfaces without cables forward nothing */
    ring_expect_fine(&r);
    ring_set(&r, 2, "firewall.docker", "yes");
    ring_expect_fine(&r);
    ring_set(&r, 2, "firewall.forward", "drop");
    ring_expect(&r, SEVERITY_ERROR, "firewall", "systemctl restart torus-routed", "Docker", NULL);
    ring_set(&r, 2, "firewall.forward", "accept");
    ring_set(&r, 2, "interface.eth0.forwarding", "0");
    ring_expect(&r, SEVERITY_ERROR, "forwarding", "systemctl restart torus-routed", "eth0", NULL);
    ring_set(&r, 2, "interface.eth0.forwarding", "1");
    ring_set(&r, 2, "ip_routes.count", "2");
    ring_expect(&r, SEVERITY_WARNING, "ip routes", "systemctl restart torus-routed", "2 of 3",
                NULL);
}

/* What takes packets elsewhere is named, with the command that the machine has given. */
TEST_WITH(begin, NULL, diverted_packets)
{
    use_routed();
    ring_set(&r, 2, "ip_routes.diverted", "0");
    ring_expect_fine(&r);
    ring_set(&r, 2, "ip_routes.diverted", "3");
    ring_set(&r, 2, "ip_routes.diverted_by", "policy rule 5270 takes them to table 52");
    ring_expect(&r, SEVERITY_ERROR, "ip routes", "ip rule list", "to 3 other machines",
                "policy rule 5270", NULL);
    ring_set(&r, 2, "ip_routes.mend", "sudo ip rule add pref 5269 to 10.128.0.0/30 lookup main");
    ring_expect(&r, SEVERITY_ERROR, "ip routes", "on that machine: sudo ip rule add pref 5269",
                "policy rule 5270", NULL);
    ring_set(&r, 2, "ip_routes.diverted", "0");
    ring_set(&r, 1, "port.+0.diverted", "policy rule 7 takes them to table 9");
    ring_set(&r, 1, "port.+0.mend", "sudo ip rule add pref 6 to 10.0.0.1/32 lookup main");
    ring_expect(&r, SEVERITY_ERROR, "links", "on that machine: sudo ip rule add pref 6", "port +0",
                "policy rule 7", NULL);
}

/* --- settings --- */

TEST_WITH(begin, NULL, settings)
{
    ring_set(&r, 0, "sysctl.net.ipv4.tcp_slow_start_after_idle", "1");
    ring_expect(&r, SEVERITY_HINT, "system", "tcp_slow_start_after_idle=0", "TCP", NULL);
    ring_begin(&r);
    ring_set(&r, 0, "cpu.governor", "powersave");
    ring_expect(&r, SEVERITY_HINT, "system", "cpupower", "powersave", NULL);
    ring_begin(&r);
    ring_set(&r, 0, "interface.eth1.rp_filter", "1");
    ring_expect(&r, SEVERITY_HINT, "rp_filter", "net.ipv4.conf.eth1.rp_filter=2", "eth1", NULL);
    ring_set(&r, 0, "sysctl.net.ipv4.conf.all.rp_filter", "2"); /* the larger one counts */
    ring_expect_fine(&r);
}

/* --- what cannot be seen --- */

static const char sandbox[] = "/proc shows torusd nothing but processes";

static void hide(const char *names, const char *fact, const char *why)
{
    char name[96];

    ring_hide(&r, 1, names);
    (void)snprintf(name, sizeof name, "unseen.%s", fact);
    ring_set(&r, 1, name, why);
}

/* What a sandbox hides is not fine. The others are. */
TEST_WITH(begin, NULL, a_sandbox_that_hides_the_kernel)
{
    hide("memory.available", "memory.available_bytes", sandbox);
    ring_expect_unseen(&r, "memory", 1, sandbox);
    hide("cpu.load", "cpu.load", sandbox);
    ring_expect_unseen(&r, "load", 1, sandbox);
    hide("sysctl.net.ipv4.tcp_slow", "sysctl.net.ipv4.tcp_slow_start_after_idle", sandbox);
    ring_expect_unseen(&r, "system", 1, sandbox);
    hide("sysctl.net.ipv4.conf", "sysctl.net.ipv4.conf.all.rp_filter", sandbox);
    ring_expect_unseen(&r, "rp_filter", 1, sandbox);
    hide("clock.", "clock.synchronised", "torusd may not ask");
    ring_expect_unseen(&r, "clocks", 1, "torusd may not ask");
    use_routed();
    hide("interface.eth0.forwarding", "sysctl.net.ipv4.ip_forward", sandbox);
    hide("interface.eth1.forwarding", "interface.eth1.forwarding", sandbox);
    ring_expect_unseen(&r, "forwarding", 1, sandbox);
    hide("firewall.", "firewall.forward", "only root");
    ring_expect_unseen(&r, "firewall", 1, "only root");
    assert_int_equal(ring_count(&r, "forwarding"), 0);
    doctor_judge(&r.doctor);
    for (size_t i = 0; i < r.doctor.findings; i++)
        assert_true(r.doctor.finding[i].severity == SEVERITY_FINE || r.doctor.finding[i].node == 1);
    doctor_free(&r.doctor);
}

/* Nothing is said to be fine that needs facts of a machine that has told none, and each check says so. */
TEST_WITH(begin, NULL, a_machine_that_tells_nothing)
{
    static const char *const checks[] = {"mtu",      "speed", "interface errors", "offloads",
                                         "clocks",   "disks", "large frames",     "limits",
                                         "memory",   "load",  "ip routes",        "system",
                                         "rp_filter"};

    r.node[1].facts = "";
    r.doctor.facts_ms = 5000;
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++)
        ring_expect_unseen(&r, checks[i], 1, "told nothing about its machine within 5.0 s");
}

/* An older release tells fewer facts. */
TEST_WITH(begin, NULL, facts_that_are_missing)
{
    ring_hide(&r, 1, "memory.");
    ring_expect_unseen(&r, "memory", 1, "another release");
    ring_hide(&r, 1, "files.");
    ring_expect_unseen(&r, "limits", 1, "another release");
    ring_hide(&r, 1, "interface.eth0.hour");
    ring_expect_unseen(&r, "interface errors", 1, "another release");
    ring_hide(&r, 1, "interface.eth0.speed");
    ring_expect_unseen(&r, "speed", 1, "the driver of eth0 tells no speed");
    ring_hide(&r, 1, "disk.0.total");
    ring_expect_unseen(&r, "disks", 1, "another release");
    ring_hide(&r, 1, "interface.eth0.mtu");
    ring_expect_unseen(&r, "mtu", 1, "another release");
}

TEST_WITH(begin, NULL, load)
{
    ring_set(&r, 2, "cpu.load", "30.00 20.50 3.00 9/999 12345");
    ring_expect(&r, SEVERITY_HINT, "load", "top", "20 processes compete for 4 processors", NULL);
    ring_set(&r, 2, "cpu.load", "30.00 2.00 3.00 9/999 12345"); /* only now */
    ring_expect_fine(&r);
}

TEST_WITH(begin, NULL, a_machine_without_a_daemon)
{
    ring_set(&r, 0, "disk.0.free_bytes", "0");
    r.node[0].status = NULL;
    r.node[0].links = NULL;
    r.doctor.torus = NULL;
    r.doctor.nodes = 1;
    ring_expect(&r, SEVERITY_ERROR, "disks", "du", "0 MiB", NULL);
}
