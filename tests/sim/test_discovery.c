/* Discovery of hosts in virtual time: lost packets, cables that are plugged elsewhere, hosts that restart. */
#include "tests/support/cmocka.h"
#include "tests/unit/discovery_world.h"

/* WORLD_TEST(HOSTS, INTERFACES, SEED, NAME) { ... }: a test with a world, `w`. */
#define WORLD_TEST(hosts, interfaces, seed, name)                                                  \
    TEST_BETWEEN(struct world, w, world_begin(&fixture, hosts, interfaces, seed),                  \
                 world_end(&fixture), name)

WORLD_TEST(64, 4, 1, test_torus_in_spite_of_loss)
{
    w->loss = 0.3;
    world_torus(w, 8, 8);
    world_start_all(w);
    assert_true(world_run_until(w, world_is_known, 60 * SECONDS));
    /* Two cables are crossed, a third one is pulled. */
    const uint32_t a = w->host[3].segment[0], b = w->host[40].segment[2];
    world_plug(w, 3, 0, b);
    world_plug(w, 40, 2, a);
    world_plug(w, 20, 1, WORLD_NO_SEGMENT);
    assert_false(world_is_known(w));
    assert_true(world_run_until(w, world_is_known, 60 * SECONDS));
    /* A host loses its power: all others forget it. */
    world_stop(w, 33, false);
    assert_false(world_is_known(w));
    assert_true(world_run_until(w, world_is_known, 120 * SECONDS));
}

WORLD_TEST(9, 4, 2, test_fast_without_loss)
{
    world_torus(w, 3, 3);
    world_start_all(w);
    assert_true(world_run_until(w, world_is_known, 3 * SECONDS));
    world_stop(w, 4, true); /* a host that leaves says so; it is unreachable, and soon forgotten */
    world_run(w, SECONDS);
    assert_false(world_entry(w, 0, 4)->reachable);
    assert_true(world_run_until(w, world_is_known, DISCOVERY_LOST_LIFE + SECONDS));
}

WORLD_TEST(9, 4, 3, test_calm_network_is_quiet)
{
    uint64_t sent;

    world_torus(w, 3, 3);
    world_start_all(w);
    assert_true(world_run_until(w, world_is_known, 3 * SECONDS));
    world_run(w, 2 * DISCOVERY_CALM);
    sent = w->sent;
    world_run(w, 60 * SECONDS);
    /* A hello every three seconds on 36 interfaces, and each host's report once on the 36 interfaces, passed on
     * by nine hosts. */
    assert_true(w->sent - sent < 36 * 25 + 9 * 9 * 4 + 200);
    assert_true(w->sent - sent > 36 * 18);
}

/* Whether host 0 knows the process that runs on host 2, and not a former one. */
static bool is_current(struct world *w)
{
    const struct host_entry *h = world_entry(w, 0, 2);

    return h != NULL && world_is_known(w) &&
           memcmp(h->key, world_entry(w, 2, 2)->key, PUBLIC_KEY_SIZE) == 0;
}

WORLD_TEST(3, 2, 4, test_restart_wins)
{
    (void)world_cable(w, 0, 0, 1, 1);
    (void)world_cable(w, 1, 0, 2, 1);
    world_start_all(w);
    assert_true(world_run_until(w, world_is_known, 3 * SECONDS));
    /* Its numbers begin again, and its key is another one. Its neighbour waits until the former process has been
     * silent for too long. */
    world_stop(w, 2, false);
    world_start(w, 2);
    assert_true(world_run_until(w, is_current, 10 * SECONDS));
    /* A process that says goodbye is replaced at once. */
    world_stop(w, 2, true);
    world_start(w, 2);
    assert_true(world_run_until(w, is_current, 2 * SECONDS));
}

WORLD_TEST(6, 3, 5, test_switch_and_loop)
{
    for (unsigned h = 0; h < 6; h++)
        world_plug(w, h, 0, 100); /* a switch */
    (void)world_cable(w, 0, 1, 1, 1);
    (void)world_cable(w, 2, 1, 2, 2); /* both ends at one host */
    world_start_all(w);
    assert_true(world_run_until(w, world_is_known, 5 * SECONDS));
}

enum { HOSTS = DISCOVERY_HEARD_MOST + 4 };

WORLD_TEST(HOSTS, 1, 6, test_neighbours_are_bounded)
{
    for (unsigned h = 0; h < HOSTS; h++)
        world_plug(w, h, 0, 100);
    world_start_all(w);
    world_run(w, 20 * SECONDS);
    for (unsigned h = 0; h < HOSTS; h++) {
        const struct host_entry *own = world_entry(w, h, h);
        assert_int_equal(own->report->interface[0].heards, DISCOVERY_HEARD_MOST);
    }
}

/* A firewall drops what arrives at one host: the other host hears the hellos of this host, but gets no answer. */
WORLD_TEST(2, 1, 8, test_a_host_that_does_not_answer)
{
    (void)world_cable(w, 0, 0, 1, 0);
    w->host[1].deaf = true;
    world_start_all(w);
    world_run(w, DISCOVERY_UNANSWERED - SECONDS);
    assert_false(world_entry(w, 0, 0)->report->interface[0].unanswered);
    world_run(w, 10 * SECONDS);
    assert_true(world_entry(w, 0, 0)->report->interface[0].unanswered);
    assert_int_equal(world_entry(w, 0, 0)->report->interface[0].heards, 0);
    assert_false(world_entry(w, 1, 1)->report->interface[0].unanswered); /* it hears nothing */
    w->host[1].deaf = false;
    world_run(w, 10 * SECONDS);
    assert_true(world_is_known(w));
    assert_false(world_entry(w, 0, 0)->report->interface[0].unanswered);
    world_stop(w, 1, false);
    w->host[1].deaf = true;
    world_run(w, 60 * SECONDS);
    assert_false(world_entry(w, 0, 0)->report->interface[0].unanswered); /* it is off */
}

WORLD_TEST(2, 2, 7, test_interfaces_that_are_down_or_gone)
{
    const struct report *report;

    (void)world_cable(w, 0, 0, 1, 1);
    w->host[1].interface[0].up = false;
    world_start_all(w);
    world_run(w, 3 * SECONDS);
    report = world_entry(w, 0, 1)->report;
    assert_false(report_interface(report, "eth0")->up);
    assert_true(report_interface(report, "eth1")->up);
    discovery_set_interfaces(w->host[1].discovery, &w->host[1].interface[1], 1);
    world_run(w, 3 * SECONDS);
    report = world_entry(w, 0, 1)->report;
    assert_null(report_interface(report, "eth0"));
    assert_int_equal(report_interface(report, "eth1")->heards, 1);
}
