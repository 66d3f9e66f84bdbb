/* What torusctl doctor finds, with made-up states and facts: one fault at a time in a ring that is in order. */
#include "client/cli/doctor/doctor.h"
#include "client/cli/doctor/report.h"
#include "doctor_fixture.h"
#include "tests/support/cmocka.h"
#include "tests/unit/json_expect.h"

static struct ring r;

static int begin(void **state)
{
    ring_begin(&r);
    return 0;
}

TEST_WITH(begin, NULL, nothing)
{
    ring_expect_fine(&r);
}

/* --- nodes --- */

TEST_WITH(begin, NULL, missing_node)
{
    ring_lose(&r, 2);
    r.link[1][0].state = TORUS_LINK_DIALLING; /* of course */
    ring_expect(&r, SEVERITY_ERROR, "nodes", "systemctl status torusd", "is down", NULL);
}

TEST_WITH(begin, NULL, another_release)
{
    r.status[3].version = "0.9";
    ring_expect(&r, SEVERITY_WARNING, "versions", "systemctl restart", "0.9", "1.0", NULL);
}

/* --- links --- */

TEST_WITH(begin, NULL, link_down)
{
    r.link[1][0].state = r.link[2][1].state = TORUS_LINK_WAITING;
    r.link[1][0].reason = "connection refused";
    ring_expect(&r, SEVERITY_ERROR, "links", "torusd.ini", "port +0 of beta (eth0)",
                "port -0 of gamma (eth1)", "connection refused", NULL);
}

TEST_WITH(begin, NULL, no_carrier)
{
    r.link[1][0].state = r.link[2][1].state = TORUS_LINK_WAITING;
    ring_set(&r, 2, "interface.eth1.carrier", "0");
    ring_expect(&r, SEVERITY_ERROR, "links", "plug the cable in", "beta", "gamma", NULL);
}

TEST_WITH(begin, NULL, interface_down)
{
    r.link[0][1].state = r.link[3][0].state = TORUS_LINK_WAITING;
    ring_set(&r, 0, "interface.eth1.state", "down");
    ring_expect(&r, SEVERITY_ERROR, "links", "on alpha: ip link set dev eth1 up", "delta", NULL);
}

TEST_WITH(begin, NULL, flapping_link)
{
    r.link[0][0].state = r.link[1][1].state = TORUS_LINK_HELD;
    ring_expect(&r, SEVERITY_ERROR, "links", "replace the cable", "alpha", "beta", NULL);
}

TEST_WITH(begin, NULL, one_way_link)
{
    r.link[0][0].state = TORUS_LINK_WAITING;
    r.link[0][0].reason = "silent for 1 s";
    doctor_judge(&r.doctor);
    for (size_t i = 0; i < r.doctor.findings; i++)
        if (r.doctor.finding[i].severity == SEVERITY_ERROR) {
            assert_contains(r.doctor.finding[i].what, "it is up");
            assert_contains(r.doctor.finding[i].why, "one direction");
        }
    doctor_free(&r.doctor);
    ring_expect(&r, SEVERITY_ERROR, "links", "", "silent for 1 s", NULL);
}

TEST_WITH(begin, NULL, wrong_cable)
{
    ring_fault(&r, 0, 0, "wrong-cable", 2, 1);
    r.link[0][0].state = r.link[1][1].state = TORUS_LINK_WAITING;
    ring_expect(&r, SEVERITY_ERROR, "cables", "move that end of the cable to beta's eth1 (port -0)",
                "alpha's eth0 (port +0)", "leads to gamma's eth1 (port -0)", NULL);
}

/* Two cables that are crossed are one finding, in the words of 'torusctl discover', however many ends report it. */
TEST_WITH(begin, NULL, crossed_cables)
{
    for (unsigned ends = 1; ends <= 2; ends++) {
        ring_begin(&r);
        ring_fault(&r, 0, 0, "wrong-cable", 3, 1); /* alpha's eth0 to delta's eth1 */
        ring_fault(&r, 2, 0, "wrong-cable", 1, 1); /* gamma's eth0 to beta's eth1 */
        if (ends == 2) {
            ring_fault(&r, 3, 1, "wrong-cable", 0, 0);
            ring_fault(&r, 1, 1, "wrong-cable", 2, 0);
        }
        r.link[0][0].state = r.link[2][0].state = TORUS_LINK_WAITING;
        r.link[1][1].state = r.link[3][1].state = TORUS_LINK_WAITING;
        ring_expect(&r, SEVERITY_ERROR, "cables", "swap the cables in ", "(port ", "leads to",
                    "alpha's eth0", "delta's eth1", NULL);
    }
}

/* If no finding of discovery fits, the cables are reported one by one; a cable that both ends report is one. */
TEST_WITH(begin, NULL, a_cable_that_both_ends_tell_of)
{
    ring_fault(&r, 0, 0, "wrong-cable", 2, 1);
    ring_fault(&r, 2, 1, "wrong-cable", 0, 0);
    assert_int_equal(ring_count(&r, "cables"), 1);
}

/* A cable, link or node is called fine only if it belongs to nodes that have answered. */
TEST_WITH(begin, NULL, a_late_node)
{
    ring_lose(&r, 2);
    r.node[2].missing = "has not answered within 3 s (2 of 2 links to it are up)";
    r.node[2].late = true;
    ring_expect(&r, SEVERITY_WARNING, "nodes", "once more", "not answered within 3 s", "2 of 2",
                NULL);
    r.node[2].facts = r.facts[2];
    ring_expect(&r, SEVERITY_WARNING, "nodes", "once more", "so it runs", NULL);
    for (size_t i = 0; i < 6; i++) {
        static const char *const checks[] = {"versions", "links", "losses",
                                             "cables",   "keys",  "clocks"};
        ring_expect_unseen(&r, checks[i], 2, "has not answered within 3 s");
    }
}

/* A link to a node that has not answered is down: that may be the node. */
TEST_WITH(begin, NULL, a_link_to_a_missing_node)
{
    ring_lose(&r, 2);
    r.link[1][0].state = TORUS_LINK_WAITING;
    ring_expect_unseen(&r, "links", 1, "a link to gamma is down");
}

TEST_WITH(begin, NULL, duplicate_rank)
{
    ring_fault(&r, 1, 0, "duplicate-rank", 3, 1);
    ring_expect(&r, SEVERITY_ERROR, "ranks", "rank of its own", "rank 3", "beta", NULL);
}

TEST_WITH(begin, NULL, faults_of_no_port)
{
    ring_fault(&r, 1, 99, "wrong-cable", 777, 888);
    ring_expect_fine(&r);
    ring_fault(&r, 1, 0, "wrong-cable", 777, 888);
    ring_expect(&r, SEVERITY_ERROR, "cables", "gamma", "another port", NULL);
}

TEST_WITH(begin, NULL, lost_packets)
{
    r.link[3][0].hour_retransmits = 90; /* too few to judge */
    ring_expect_fine(&r);
    r.link[3][0].hour_retransmits = 500;
    ring_expect(&r, SEVERITY_WARNING, "losses", "ethtool -S eth0", "delta", "500", NULL);
    ring_begin(&r);
    r.link[3][0].hour_connects = 9;
    ring_expect(&r, SEVERITY_WARNING, "losses", "journalctl", "9 times in the last hour", NULL);
    ring_begin(&r);
    r.link[3][0].retransmits = 100000; /* long ago */
    r.link[3][0].connects = 100;
    ring_expect_fine(&r);
    r.link[3][0].hour_ms = 0;
    ring_expect_unseen(&r, "losses", 3, "in the last hour");
}

/* --- interfaces --- */

TEST_WITH(begin, NULL, different_mtu)
{
    ring_set(&r, 2, "interface.eth1.mtu", "1400");
    ring_set(&r, 2, "interface.eth1.physical", "no");
    ring_expect(&r, SEVERITY_ERROR, "mtu", "on gamma: ip link set dev eth1 mtu 9000", "eth0",
                "9000", "gamma's eth1", "1400", NULL);
}

TEST_WITH(begin, NULL, small_mtu)
{
    ring_set(&r, 0, "interface.eth0.mtu", "1500");
    ring_set(&r, 1, "interface.eth1.mtu", "1500");
    assert_int_equal(ring_count(&r, "large frames"), 2);
    assert_int_equal(ring_count(&r, "mtu"), 0);
}

TEST_WITH(begin, NULL, slow_interface)
{
    ring_set(&r, 0, "interface.eth0.speed_mbit", "100");
    ring_set(&r, 1, "interface.eth1.speed_mbit", "100");
    assert_int_equal(ring_count(&r, "speed"), 1); /* one cable */
    ring_expect(&r, SEVERITY_WARNING, "speed", "another cable; or correct link_mbit",
                "link_mbit says", NULL);
    ring_begin(&r);
    ring_set(&r, 0, "interface.eth0.speed_mbit", "2500");
    ring_expect(&r, SEVERITY_WARNING, "speed", "ethtool -s eth0", "2500", "beta", NULL);
    ring_begin(&r);
    ring_set(&r, 1, "interface.eth0.duplex", "half");
    ring_expect(&r, SEVERITY_ERROR, "speed", "autoneg on", "half duplex", NULL);
}

/* A cable comes up at less than its two cards can, or at a tenth of what the others have. */
TEST_WITH(begin, NULL, slow_cable)
{
    for (uint32_t node = 0; node < RING; node++)
        r.status[node].link_mbit = 0;
    ring_set(&r, 0, "interface.eth0.speed_mbit", "100");
    ring_set(&r, 1, "interface.eth1.speed_mbit", "100");
    ring_expect(&r, SEVERITY_WARNING, "speed", "another cable", "eth0", "100 Mbit/s",
                "most other cables at 1000", NULL);
    ring_set(&r, 0, "interface.eth0.speed_most_mbit", "10000");
    ring_set(&r, 1, "interface.eth1.speed_most_mbit", "1000");
    ring_expect(&r, SEVERITY_WARNING, "speed", "autoneg on", "the cards at both ends", "1000",
                NULL);
    ring_set(&r, 1, "interface.eth1.speed_most_mbit", "100"); /* one of its cards is slow */
    ring_expect_fine(&r);
    ring_begin(&r);
    for (uint32_t node = 0; node < RING; node++)
        r.status[node].link_mbit = 0;
    ring_set(&r, 0, "interface.eth0.speed_mbit", "200"); /* cards may differ */
    ring_set(&r, 1, "interface.eth1.speed_mbit", "200");
    ring_expect_fine(&r);
}

/* A port may have a rate of its own. */
TEST_WITH(begin, NULL, slow_cable_as_configured)
{
    ring_set(&r, 0, "interface.eth0.speed_mbit", "100");
    ring_set(&r, 1, "interface.eth1.speed_mbit", "100");
    ring_set(&r, 0, "interface.eth0.speed_most_mbit", "100");
    ring_set(&r, 1, "interface.eth1.speed_most_mbit", "100");
    r.link[0][0].nominal_send_bps = r.link[1][1].nominal_send_bps = 100000000;
    ring_expect_fine(&r);
}

/* What a port receives may be above the speed of the interface, too. */
TEST_WITH(begin, NULL, configured_above_the_speed)
{
    r.link[0][0].nominal_send_bps = 1000000000;
    r.link[0][0].nominal_receive_bps = 2500000000;
    ring_expect(&r, SEVERITY_WARNING, "speed", "correct link_mbit", "link_mbit says 2500", NULL);
}

/* The two ends of a cable are configured differently, in one direction. */
TEST_WITH(begin, NULL, ends_that_disagree)
{
    r.link[0][0].nominal_send_bps = 1000000000;
    r.link[1][1].nominal_receive_bps = 12345000;
    ring_expect(&r, SEVERITY_WARNING, "speed", "+0.link_mbit or, on beta, -0.link_mbit",
                "port +0 sends 1000 Mbit/s", "beta receives 12.345 by its port -0", NULL);
    r.link[1][1].nominal_receive_bps = 990000000;
    ring_expect_fine(&r);
}

TEST_WITH(begin, NULL, link_that_carries_little)
{
    r.link[0][0].planned_bps = 14336000000;
    r.link[0][0].planned_from = "observed";
    ring_expect(&r, SEVERITY_WARNING, "speed", "another slot", "14336 Mbit/s", "+0", NULL);
}

TEST_WITH(begin, NULL, interface_errors)
{
    ring_set(&r, 0, "interface.eth0.hour_rx_errors", "9");
    ring_expect_fine(&r);
    ring_set(&r, 0, "interface.eth0.hour_rx_errors", "70");
    ring_expect(&r, SEVERITY_WARNING, "interface errors", "ethtool -S eth0", "70 errors", NULL);
    ring_begin(&r);
    ring_set(&r, 0, "interface.eth0.hour_tx_dropped", "5000");
    ring_expect(&r, SEVERITY_HINT, "interface errors", "ethtool -G", "5000 of 1000000", NULL);
}

TEST_WITH(begin, NULL, offloads)
{
    ring_set(&r, 0, "interface.eth1.tso", "off");
    ring_set(&r, 0, "interface.eth1.gro", "off");
    ring_expect(&r, SEVERITY_HINT, "offloads", "ethtool -K eth1 tso on gro on", "tso, gro", NULL);
    ring_set(&r, 0, "interface.eth1.physical", "no");
    ring_expect_fine(&r);
}

/* Another machine has sent the facts. */
TEST_WITH(begin, NULL, facts_that_make_no_sense)
{
    static const char *const values[] = {"", "-1", "18446744073709551616", "1e9", "yes", "0"};
    static const char *const names[] = {"interface.eth0.mtu",
                                        "interface.eth0.speed_mbit",
                                        "interface.eth0.hour_rx_errors",
                                        "disk.0.total_bytes",
                                        "disk.0.free_bytes",
                                        "memory.available_bytes",
                                        "files.limit",
                                        "files.open",
                                        "ip_routes.count"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            ring_begin(&r);
            ring_set(&r, 1, names[i], values[k]);
            (void)ring_count(&r, "");
        }
    (void)strcpy(r.facts[1], "disk.0.path");
    (void)ring_count(&r, "");
    (void)strcpy(r.facts[1], "\n\n x\ndisk.0.path /a\ndisk.0.path /b");
    (void)ring_count(&r, "");
}

TEST_WITH(begin, NULL, reading_facts)
{
    static const char facts[] = "a.b 12\na 3\nlong x y z\nempty \nlast 7";
    char text[FACT_SIZE];
    uint64_t n;

    assert_true(fact_number(facts, "a", &n) && n == 3);
    assert_true(fact_number(facts, "a.b", &n) && n == 12);
    assert_true(fact_number(facts, "last", &n) && n == 7);
    assert_false(fact_number(facts, "long", &n));
    assert_false(fact_number(facts, "b", &n));
    assert_true(fact_is(facts, "long", "x y z"));
    assert_true(fact_text(facts, "empty", text));
    assert_string_equal(text, "");
}

/* The worst case of texts, which are cut. */
TEST_WITH(begin, NULL, long_texts)
{
    static char text[2000];

    memset(text, 'x', sizeof text - 1);
    for (uint32_t i = 0; i < RING; i++) {
        r.node[i].host = text;
        r.status[i].version = i == 0 ? "1" : text;
        for (unsigned port = 0; port < 2; port++) {
            r.link[i][port].interface = r.link[i][port].reason = text;
            r.link[i][port].state = TORUS_LINK_WAITING;
        }
    }
    ring_fault(&r, 0, 0, text, 2, 1);
    assert_true(ring_count(&r, "links") > 0);
}

/* What torusctl doctor finds about machines, with made-up facts: keys, clocks, disks, limits, routes, settings. */

#define OLD "aaaaaaaaaaaaaaaa"
#define NEW "bbbbbbbbbbbbbbbb"

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

/* Checks that need facts of a machine that has told none never say that it is fine, but that they could not see. */
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
    ring_expect_unseen(&r, "speed", 1, "the driver of eth0 reports no speed");
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

/* How torusctl doctor shows what it has found: one finding a cause, counts of hosts, and what could not be seen. */

static struct diagnosis diagnosis;
static char text[8192];

/* Judges the ring, and prints the report into `text`. It must have this: see json_expect(). */
static void report(bool all, const char *wanted)
{
    doctor_judge(&r.doctor);
    diagnosis.doctor = r.doctor;
    json_t *value = doctor_report_value(&diagnosis, all);
    assert_non_null(value);
    FILE *out = fmemopen(text, sizeof text, "w");
    assert_non_null(out);
    assert_int_equal(doctor_report_print(out, value), 0);
    assert_int_equal(fclose(out), 0);
    doctor_free(&r.doctor);
    json_expect(value, wanted);
    json_decref(value);
}

static void has(const char *part)
{
    assert_contains(text, part);
}

TEST_WITH(begin, NULL, all_is_fine)
{
    report(false, "worst=fine checks.check:memory.fine=4 checks.check:memory.not_seen=0 "
                  "checks.check:memory.wrong=0 checks.check:links.fine=4 "
                  "checks.check:links.not_seen=0 checks.check:links.wrong=0");
    assert_string_equal(text, "4 of 4 hosts answered: 0 errors, 0 warnings, 0 hints\n");
    report(true, "worst=fine");
    has("fine     memory: alpha, beta, gamma and delta: ");
}

/* Eight ends of links lose packets: that is one finding, with all hosts, and the first few ends. */
TEST_WITH(begin, NULL, alike_findings_are_one)
{
    for (uint32_t node = 0; node < RING; node++)
        for (unsigned port = 0; port < 2; port++)
            r.link[node][port].hour_retransmits = 1000 + node;
    report(false, "findings=#1 findings.0.hosts=#4 findings.0.each=#8 "
                  "checks.check:losses.fine=0 checks.check:losses.not_seen=0 "
                  "checks.check:losses.wrong=4");
    has("warning  losses: alpha, beta, gamma and delta: port +0 of alpha (eth0) has sent 1000");
    has("also: alpha: port -0 of alpha (eth1)");
    has("and 4 more of this kind");
    has("4 of 4 hosts answered: 0 errors, 1 warning, 0 hints\n");
}

/* One cause hides several checks: one line, and a count. It is not "fine". */
TEST_WITH(begin, NULL, what_was_not_seen)
{
    for (uint32_t node = 1; node < 3; node++) {
        ring_hide(&r, node, "memory.available");
        ring_hide(&r, node, "cpu.load");
        ring_set(&r, node, "unseen.memory.available_bytes", "hidden");
        ring_set(&r, node, "unseen.cpu.load", "hidden");
    }
    report(false, "worst=not_seen checks.check:memory.fine=2 checks.check:memory.not_seen=2 "
                  "checks.check:memory.wrong=0");
    has("not seen load, memory: beta and gamma: hidden\n");
    has("4 of 4 hosts answered: 0 errors, 0 warnings, 0 hints; 2 checks could not be seen on 2 "
        "hosts\n");
}

TEST_WITH(begin, NULL, a_node_that_does_not_answer)
{
    ring_lose(&r, 2);
    report(false, "answered.state=3 answered.facts=3 checks.check:nodes.fine=3 "
                  "checks.check:nodes.not_seen=0 checks.check:nodes.wrong=1 "
                  "checks.check:keys.fine=3 checks.check:keys.not_seen=1 "
                  "checks.check:keys.wrong=0");
    has("error    nodes: gamma: the node is down, or cannot be reached");
    has("3 of 4 hosts answered: 1 error, ");
    has("not seen mtu: beta and delta: the MTU of gamma, at the other end of a cable, is not "
        "known\n");
    has(" checks could not be seen on 3 hosts\n");
}

/* Both ends of a link that is down have something wrong. */
TEST_WITH(begin, NULL, a_link_has_two_hosts)
{
    r.link[1][0].state = r.link[2][1].state = TORUS_LINK_WAITING;
    report(false, "checks.check:links.fine=2 checks.check:links.not_seen=0 "
                  "checks.check:links.wrong=2");
    has("error    links: beta and gamma: the link between");
}
