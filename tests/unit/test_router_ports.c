/* Ports: dialling, carriers, links that flap. */
#include "router_fixture.h"
#include "tests/support/cmocka.h"

static const unsigned plus = 0, minus = 1;

TEST(dialling_goes_on_for_ever_and_slows_down)
{
    struct router_fixture f;
    uint64_t began, longest = 0;

    fixture_open(&f, "4x4", 5, NULL);
    router_start(f.router);
    for (int i = 0; i < 30; i++) {
        unsigned dials = f.dials[plus];
        began = f.now;
        router_dial_failed(f.router, plus, "connection refused");
        assert_int_equal(fixture_state_of(&f, plus), PORT_WAITING);
        while (f.dials[plus] == dials)
            fixture_pass(&f, 1 * MILLISECONDS);
        assert_int_equal(f.dials[plus], dials + 1);
        longest = f.now - began > longest ? f.now - began : longest;
        if (i == 0)
            assert_in_range(f.now - began, 20 * MILLISECONDS, 60 * MILLISECONDS);
        assert_true(f.now - began <= 3 * SECONDS);
    }
    assert_true(longest > 1 * SECONDS);
    /* A link that comes up and goes down is dialled quickly again. */
    fixture_link_up(&f, plus);
    unsigned dials = f.dials[plus];
    link_closed(f.up[plus]->link, "reset");
    f.up[plus]->link = NULL;
    fixture_pass(&f, 60 * MILLISECONDS);
    assert_int_equal(f.dials[plus], dials + 1);
    fixture_close(&f);
}

TEST(a_link_without_a_carrier_is_given_up)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    fixture_link_up(&f, plus);
    struct fixture_connection *half = fixture_connect(&f, minus, false);
    router_carrier(f.router, minus, "no carrier on eth1");
    assert_null(f.up[minus]->link);
    assert_null(half->link);
    assert_string_equal(f.up[minus]->last, ""); /* nobody would hear it */
    assert_non_null(f.up[plus]->link);
    assert_int_equal(router_topology(f.router)->entry[5].up, 1u << plus);
    fixture_check_reason(&f, minus, "no carrier on eth1");
    router_carrier(f.router, minus, "no carrier on eth1, which is set down");
    fixture_check_reason(&f, minus, "set down");
    /* A connection that comes nevertheless is accepted. */
    fixture_link_up(&f, minus);
    assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
    router_carrier(f.router, minus, NULL);
    assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
    fixture_close(&f);
}

/* Losses count for an hour, even if the link has been down and come up again since. */
TEST(losses_of_the_last_hour)
{
    struct router_fixture f;
    struct port_info info;

    fixture_open(&f, "4x4", 5, NULL);
    router_port_info(f.router, minus, &info);
    assert_int_equal(info.hour_ns, 0);
    fixture_link_up(&f, minus);
    fixture_stay_up(&f, minus, 60 * SECONDS);
    f.up[minus]->stat.retransmits = 500;
    fixture_stay_up(&f, minus, 60 * SECONDS);
    router_port_info(f.router, minus, &info);
    assert_in_range(info.hour_ns, 120 * SECONDS, 125 * SECONDS);
    assert_int_equal(info.hour_retransmits, 500);
    assert_int_equal(info.hour_connects, 1);
    assert_true(info.hour_tx_bytes > 0);
    link_closed(f.up[minus]->link, "reset");
    f.up[minus]->link = NULL;
    fixture_link_up(&f, minus);
    router_port_info(f.router, minus, &info);
    assert_int_equal(info.hour_retransmits, 500);
    assert_int_equal(info.hour_connects, 2);
    fixture_stay_up(&f, minus, 3700 * SECONDS);
    router_port_info(f.router, minus, &info);
    assert_in_range(info.hour_ns, 3300 * SECONDS, 3600 * SECONDS);
    assert_int_equal(info.hour_retransmits, 0);
    assert_int_equal(info.hour_connects, 0);
    assert_int_equal(info.totals.retransmits, 500);
    fixture_close(&f);
}

/* At once, not after the pause that has grown in the meantime, and whether or not a dial is running. */
TEST(a_carrier_that_is_back_is_dialled_at_once)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    router_start(f.router);
    fixture_link_up(&f, plus);
    for (int waiting = 0; waiting < 2; waiting++) {
        router_carrier(f.router, plus, "no carrier on eth0");
        for (unsigned dials = f.dials[plus], i = 0; i < 10; i++) {
            while (f.dials[plus] == dials)
                fixture_pass(&f, 1 * MILLISECONDS);
            dials = f.dials[plus];
            if (i < 9 || waiting != 0)
                router_dial_failed(f.router, plus, "timed out");
        }
        fixture_check_reason(&f, plus, "no carrier on eth0"); /* which is why dialling fails */
        unsigned dials = f.dials[plus];
        router_carrier(f.router, plus, NULL);
        assert_int_equal(f.dials[plus], dials + 1);
        fixture_check_reason(&f, plus, "the carrier is back");
        router_carrier(f.router, plus, NULL);
        assert_int_equal(f.dials[plus], dials + 1);
        fixture_link_up(&f, plus);
    }
    fixture_close(&f);
}

/* The second of two connections replaces the first, and the port is not dialled again for the first one, in whichever
 * order the two ends notice; otherwise a third would replace the second. */
TEST(a_connection_that_has_been_replaced_is_not_dialled_again)
{
    for (int closed_first = 0; closed_first < 2; closed_first++) {
        struct router_fixture f;
        fixture_open(&f, "4x4", 5, NULL);
        router_start(f.router);
        fixture_link_up(&f, plus);
        unsigned dials = f.dials[plus];
        struct fixture_connection *old = f.up[plus];
        if (closed_first) {
            struct fixture_connection *next = fixture_connect(&f, plus, true);
            link_closed(old->link, "closed by the other side");
            old->link = NULL;
            fixture_pass(&f, 2 * SECONDS);
            assert_int_equal(f.dials[plus], dials);
            /* The second connection is the only one: when it goes, the port is dialled. */
            link_closed(next->link, "connection reset by peer");
            next->link = NULL;
            fixture_pass(&f, 2 * SECONDS);
            assert_int_equal(f.dials[plus], dials + 1);
        } else {
            fixture_link_up(&f, plus);
            assert_null(old->link);
            fixture_stay_up(&f, plus, 20 * SECONDS);
            assert_int_equal(f.dials[plus], dials);
        }
        fixture_close(&f);
    }
}

static void carrier(struct router_fixture *f, unsigned port, uint64_t away)
{
    router_carrier(f->router, port, "no carrier on eth0");
    fixture_pass(f, away);
    router_carrier(f->router, port, NULL);
}

static bool port_dialled(const struct router_fixture *f, unsigned port)
{
    return torus_port_dials(&f->torus, f->rank, port);
}

/* The link is held for so long after the last loss, and is then dialled or listened on again. */
static void check_held(struct router_fixture *f, unsigned port, uint64_t time)
{
    const unsigned dials = f->dials[port];
    struct port_info info;

    router_port_info(f->router, port, &info);
    assert_int_equal(info.state, PORT_HELD);
    assert_true(info.held_ns == time);
    fixture_pass(f, time - 1);
    router_port_info(f->router, port, &info);
    assert_int_equal(info.state, PORT_HELD);
    assert_true(info.held_ns == 1);
    assert_int_equal(f->dials[port], dials);
    fixture_pass(f, 1);
    assert_int_not_equal(fixture_state_of(f, port), PORT_HELD);
    assert_int_equal(f->dials[port], dials + (torus_port_direction(&f->torus, port) > 0));
    fixture_link_up(f, port);
}

TEST(a_link_that_flaps_has_to_be_quiet)
{
    for (unsigned port = 0; port < 2; port++) {
        struct router_fixture f;
        fixture_open(&f, "3", 0, NULL);
        fixture_link_up(&f, port);
        for (int i = 0; i < 2; i++) { /* is used at once */
            carrier(&f, port, 1 * SECONDS);
            fixture_link_up(&f, port);
        }
        carrier(&f, port, 5 * SECONDS);
        fixture_check_reason(&f, port, "quiet for 2.0 s more");
        struct fixture_connection *c = fixture_connect(&f, port, port_dialled(&f, port));
        fixture_say_heartbeat(c);
        assert_null(c->link);
        assert_non_null(strstr(c->last, "node 0 does not use this link"));
        fixture_pass(&f, 1 * SECONDS);
        carrier(&f, port, 100 * SECONDS); /* it was not quiet: the time starts again */
        check_held(&f, port, ROUTER_HOLD);
        for (uint64_t hold = 2 * ROUTER_HOLD; hold <= ROUTER_HOLD_MOST; hold *= 2) {
            fixture_stay_up(&f, port, ROUTER_HOLD_FORGET / 2);
            carrier(&f, port, 1);
            check_held(&f, port, hold);
        }
        carrier(&f, port, 1);
        check_held(&f, port, ROUTER_HOLD_MOST);
        fixture_stay_up(&f, port, ROUTER_HOLD_FORGET);
        for (int i = 0; i < 2; i++) { /* that is forgotten */
            carrier(&f, port, 1);
            assert_int_not_equal(fixture_state_of(&f, port), PORT_HELD);
            fixture_link_up(&f, port);
        }
        carrier(&f, port, 1);
        check_held(&f, port, ROUTER_HOLD);
        fixture_close(&f);
    }
}

static void fall_silent(struct router_fixture *f, unsigned port, bool answering)
{
    while (f->up[port]->link != NULL) {
        f->up[port]->stat.in_flight = true;
        f->up[port]->stat.acked += answering;
        fixture_pass(f, 100 * MILLISECONDS);
    }
}

/* Silence counts as a loss; a daemon that does not run, or that ends, does not. */
TEST(what_counts_as_flapping)
{
    struct router_fixture f;

    fixture_open(&f, "3", 0, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(fixture_state_of(&f, minus), PORT_HELD);
        fixture_link_up(&f, minus);
        fall_silent(&f, minus, false);
    }
    assert_int_equal(fixture_state_of(&f, minus), PORT_HELD);
    for (int i = 0; i < 4; i++) {
        fixture_link_up(&f, plus);
        fixture_say_heartbeat(f.up[plus]);
        if (i % 2 == 0) {
            fall_silent(&f, plus, true);
        } else {
            link_closed(f.up[plus]->link, "connection reset");
            f.up[plus]->link = NULL;
        }
        assert_int_not_equal(fixture_state_of(&f, plus), PORT_HELD);
    }
    fixture_close(&f);
}

/* However long each end takes to notice. */
TEST(losses_that_are_noticed_late_count_as_well)
{
    struct router_fixture f;

    fixture_open(&f, "3", 0, NULL);
    router_set_heartbeats(f.router, ROUTER_HEARTBEAT, 8 * SECONDS);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(fixture_state_of(&f, minus), PORT_HELD);
        fixture_link_up(&f, minus);
        fixture_stay_up(&f, minus, 2 * SECONDS);
        fall_silent(&f, minus, false);
    }
    assert_int_equal(fixture_state_of(&f, minus), PORT_HELD);
    fixture_close(&f);
}
