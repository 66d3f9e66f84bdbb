/* When a link that is up counts as lost. */
#include "daemon/torusd/router/health.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

static const unsigned minus = 1;

/* Nothing arrives, and sent bytes are not acknowledged: the limit is that of the settings. */
TEST(a_silent_link_is_given_up)
{
    static const uint64_t times[][2] = {{ROUTER_HEARTBEAT, ROUTER_SILENCE},
                                        {100 * MILLISECONDS, 3 * SECONDS},
                                        {1 * SECONDS, 10 * SECONDS}};

    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const uint64_t interval = times[i][0], silence = times[i][1];
        struct router_fixture f;
        char expected[40];
        fixture_open(&f, "4x4", 5, NULL);
        router_set_heartbeats(f.router, interval, silence);
        fixture_link_up(&f, minus);
        f.up[minus]->stat.in_flight = true;
        for (int k = 0; k < 3; k++) {
            fixture_pass(&f, silence - 1);
            assert_non_null(f.up[minus]->link);
            if (k % 2 == 0 || 2 * silence > ROUTER_STALL)
                fixture_say_heartbeat(f.up[minus]);
            if (k % 2 != 0 || 2 * silence > ROUTER_UNACKED)
                f.up[minus]->stat.acked++;
        }
        fixture_pass(&f, silence - 1);
        assert_non_null(f.up[minus]->link);
        fixture_pass(&f, interval + 1);
        assert_null(f.up[minus]->link);
        assert_int_equal(router_topology(f.router)->entry[5].up, 0);
        (void)snprintf(expected, sizeof expected, "silent for %g s", (double)silence / SECONDS);
        fixture_check_reason(&f, minus, expected);
        fixture_close(&f);
    }
}

/* The neighbour's system accepts bytes, or reports that it has no room: the neighbour is slow, and the link works. */
TEST(a_neighbour_that_does_not_run_is_waited_for)
{
    for (int full = 0; full < 2; full++) {
        struct router_fixture f;
        fixture_open(&f, "4x4", 5, NULL);
        fixture_link_up(&f, minus);
        struct connection_stat *stat = &f.up[minus]->stat;
        fixture_say_heartbeat(f.up[minus]);
        for (uint64_t passed = 0; passed < ROUTER_STALL; passed += 100 * MILLISECONDS) {
            assert_non_null(f.up[minus]->link);
            stat->in_flight = full == 0;
            stat->acked += full == 0;
            fixture_pass(&f, 100 * MILLISECONDS);
        }
        fixture_pass(&f, ROUTER_HEARTBEAT);
        assert_null(f.up[minus]->link);
        fixture_check_reason(&f, minus, "silent for 5 s: torusd there");
        fixture_close(&f);
    }
}

static bool is_quiet(const struct router_fixture *f)
{
    return topology_link_quiet(router_topology(f->router), 5, minus);
}

/* Only a host that forwards IP packets looks; the link stays up, and is used again after a while with answers. */
TEST(a_link_is_quiet_long_before_it_is_given_up)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    struct connection_stat *stat = &f.up[minus]->stat;
    stat->in_flight = true;
    fixture_pass(&f, 6 * QUIET_BEAT);
    assert_false(is_quiet(&f));
    stat->acked++;
    router_forward(f.router, true);
    fixture_pass(&f, QUIET_BEATS * QUIET_BEAT - 2 * MILLISECONDS);
    assert_false(is_quiet(&f));
    fixture_pass(&f, QUIET_BEAT + 4 * MILLISECONDS);
    assert_true(is_quiet(&f));
    assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
    for (uint32_t i = 0; i < QUIET_CALM - 1; i++) {
        stat->acked++;
        fixture_pass(&f, QUIET_BEAT);
    }
    assert_true(is_quiet(&f));
    for (uint32_t i = 0; i < 3; i++) {
        stat->acked++;
        fixture_pass(&f, QUIET_BEAT);
    }
    assert_false(is_quiet(&f));
    fixture_close(&f);
}

/* A queue on the way, a node that does not run itself, and a neighbour without a processor are no silence. */
TEST(a_slow_link_is_not_quiet)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    struct connection_stat *stat = &f.up[minus]->stat;
    router_forward(f.router, true);
    *stat = (struct connection_stat){.in_flight = true, .rtt_us = 200000};
    fixture_pass(&f, (QUIET_BEATS + 3) * QUIET_BEAT);
    assert_false(is_quiet(&f));
    stat->rtt_us = 100;
    for (uint32_t i = 0; i < 10; i++) { /* this node gets a processor now and then */
        stat->acked++;
        f.now += 700 * MILLISECONDS;
        router_tick(f.router);
        assert_false(is_quiet(&f));
    }
    for (uint32_t i = 0; i < 20; i++) { /* the neighbour's system acknowledges late */
        stat->acked += i % QUIET_BEATS == 0;
        fixture_pass(&f, QUIET_BEAT);
        assert_false(is_quiet(&f));
    }
    fixture_close(&f);
}

/* To ask the kernel takes longer than to read a frame. What was acknowledged while nobody asked does not delay anything. */
TEST(acknowledgements_are_asked_for_when_nothing_arrives)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    router_set_heartbeats(f.router, 60 * SECONDS, 60 * SECONDS);
    fixture_link_up(&f, minus);
    router_forward(f.router, true);
    f.up[minus]->stat.in_flight = true;
    fixture_say_heartbeat(f.up[minus]);
    fixture_pass(&f, QUIET_BEAT - 1); /* what is said from now on comes just before a look */
    f.up[minus]->stats = 0;
    for (uint32_t i = 0; i < 10; i++) {
        fixture_say_heartbeat(f.up[minus]);
        f.up[minus]->stat.acked++;
        fixture_pass(&f, QUIET_BEAT);
    }
    assert_int_equal(f.up[minus]->stats, 0);
    fixture_pass(&f, (QUIET_BEATS - 1) * QUIET_BEAT);
    assert_false(is_quiet(&f));
    fixture_pass(&f, QUIET_BEAT);
    assert_true(is_quiet(&f));
    assert_int_equal(f.up[minus]->stats, QUIET_BEATS);
    fixture_close(&f);
}

/* Small frames arrive, but sent bytes are no longer acknowledged. */
TEST(a_link_that_loses_large_packets_is_given_up)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    struct connection_stat *stat = &f.up[minus]->stat;
    *stat = (struct connection_stat){.acked = 7, .in_flight = true, .unacked = 8948, .mtu = 9000};
    for (uint64_t passed = 0; passed < ROUTER_UNACKED; passed += 200 * MILLISECONDS) {
        assert_non_null(f.up[minus]->link);
        fixture_say_heartbeat(f.up[minus]);
        fixture_pass(&f, 200 * MILLISECONDS);
    }
    fixture_say_heartbeat(f.up[minus]);
    fixture_pass(&f, 2 * ROUTER_HEARTBEAT);
    assert_null(f.up[minus]->link);
    fixture_check_reason(&f, minus, "sent 8948 bytes");
    fixture_check_reason(&f, minus, "same MTU (9000 here)");
    fixture_close(&f);
}

TEST(a_slow_heartbeat_gets_more_time)
{
    struct peer_message beat = {.kind = PEER_HEARTBEAT, .heartbeat = {4000}};
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    for (int i = 0; i < 3; i++) {
        fixture_say(f.up[minus], &beat, NULL, 0);
        fixture_pass(&f, 12 * SECONDS - 1);
        assert_non_null(f.up[minus]->link);
    }
    beat.heartbeat.interval_ms = UINT32_MAX; /* but not any time */
    fixture_say(f.up[minus], &beat, NULL, 0);
    fixture_pass(&f, 15 * SECONDS + ROUTER_HEARTBEAT);
    assert_null(f.up[minus]->link);
    fixture_close(&f);
}

/* A damaged length swallows all later bytes, including heartbeats. */
TEST(a_link_without_whole_frames_is_given_up)
{
    static const uint8_t endless[] = {0, 0, 0, 30, 0, 0, 200, 0}, beat[] = {0};
    struct router_fixture f;

    fixture_open(&f, "4", 0, NULL);
    fixture_link_up(&f, 0);
    fixture_feed(f.up[0], endless, sizeof endless);
    for (uint64_t passed = 0; passed + SECONDS < ROUTER_FRAME_TIME; passed += SECONDS) {
        assert_non_null(f.up[0]->link);
        fixture_pass(&f, SECONDS);
        fixture_feed(f.up[0], beat, sizeof beat);
    }
    fixture_pass(&f, SECONDS);
    assert_null(f.up[0]->link);
    assert_non_null(strstr(f.up[0]->last, " 20 s"));
    fixture_close(&f);
}

TEST(we_are_not_silent_ourselves)
{
    struct router_fixture f;
    unsigned beats = 0;

    fixture_open(&f, "4x4", 5, NULL);
    router_set_heartbeats(f.router, 125 * MILLISECONDS, ROUTER_SILENCE);
    fixture_link_up(&f, minus);
    for (int i = 0; i < 10; i++) {
        fixture_pass(&f, SECONDS);
        fixture_say_heartbeat(f.up[minus]);
        struct peer_message *head;
        while ((head = fixture_next(f.up[minus], NULL, 0, NULL)) != NULL) {
            if (head->kind == PEER_HEARTBEAT) {
                assert_int_equal(head->heartbeat.interval_ms, 125);
                beats++;
            }
            message_forget(head);
        }
    }
    assert_in_range(beats, 79, 81);
    fixture_close(&f);
}

/* A process that was stopped for a while, or again and again, must not blame its peers for its own
 * absence. */
TEST(time_that_we_slept_is_not_held_against_the_peer)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    f.up[minus]->stat.in_flight = true;
    for (unsigned beats = 0; beats + 1 < ROUTER_SILENCE / ROUTER_HEARTBEAT; beats++) {
        f.now += 60 * SECONDS;
        router_tick(f.router);
        assert_non_null(f.up[minus]->link);
    }
    fixture_say_heartbeat(f.up[minus]);
    fixture_pass(&f, ROUTER_SILENCE - 1);
    assert_non_null(f.up[minus]->link);
    fixture_pass(&f, 2 * ROUTER_HEARTBEAT);
    assert_null(f.up[minus]->link);
    fixture_close(&f);
}
