/* What torusctl doctor finds, with made-up states and facts: one fault at a time in a ring that is in order. */
#include "client/cli/doctor/doctor.h"
#include "doctor_fixture.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

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
            assert_non_null(strstr(r.doctor.finding[i].what, "it is up"));
            assert_non_null(strstr(r.doctor.finding[i].why, "one direction"));
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

/* Two cables that are crossed are one finding, in the words of 'torusctl discover', however many ends tell of it. */
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

/* What nobody can name falls back to the cables one by one; a cable that both ends tell of is one. */
TEST_WITH(begin, NULL, a_cable_that_both_ends_tell_of)
{
    ring_fault(&r, 0, 0, "wrong-cable", 2, 1);
    ring_fault(&r, 2, 1, "wrong-cable", 0, 0);
    assert_int_equal(ring_count(&r, "cables"), 1);
}

/* "fine" of a cable, link or node is said only of nodes that have answered. */
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
    assert_int_equal(ring_count(&r, "speed"), 2);
    ring_begin(&r);
    ring_set(&r, 0, "interface.eth0.speed_mbit", "2500");
    ring_expect(&r, SEVERITY_WARNING, "speed", "ethtool -s eth0", "2500", "beta", NULL);
    ring_begin(&r);
    ring_set(&r, 1, "interface.eth0.duplex", "half");
    ring_expect(&r, SEVERITY_ERROR, "speed", "autoneg on", "half duplex", NULL);
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
