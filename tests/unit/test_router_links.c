/* Which connections are accepted, and when a link is up. */
#include "daemon/torusd/router/health.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"

static const unsigned plus = 0, minus = 1;

ROUTER_TEST(the_plus_side_dials_and_says_hello_first)
{
    assert_int_equal(f->dials[0], 0);
    router_start(f->router);
    for (unsigned port = 0; port < 4; port++)
        assert_int_equal(f->dials[port], torus_port_direction(&f->torus, port) > 0);
    assert_int_equal(fixture_state_of(f, plus), PORT_DIALLING);
    assert_int_equal(fixture_state_of(f, minus), PORT_WAITING);
    struct fixture_connection *c = fixture_connect(f, plus, true);
    struct peer_message *head = fixture_next(c, NULL, 0, NULL);
    assert_int_equal(head->kind, PEER_HELLO);
    assert_string_equal(head->hello.dims, "4x4");
    assert_int_equal(head->hello.rank, 5);
    assert_int_equal(head->hello.port, plus);
    assert_int_equal(head->hello.version, PROTOCOL_VERSION);
    message_forget(head);
    assert_null(fixture_next(c, NULL, 0, NULL)); /* nothing else before the peer's hello */
    assert_int_equal(fixture_state_of(f, plus), PORT_HELLO);
}

ROUTER_TEST(a_valid_hello_brings_the_link_up)
{
    for (unsigned port = 0; port < 4; port++) {
        fixture_link_up(f, port);
        assert_int_equal(fixture_state_of(f, port), PORT_UP);
        assert_int_equal(f->topology_changes, port + 1);
    }
    assert_int_equal(router_topology(f->router)->entry[5].up, 0xf);
}

static void check_stranger(struct peer_hello *hello, const char *text)
{
    struct router_fixture f;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    fixture_say_hello(c, hello);
    assert_null(c->link);
    assert_contains(c->last, text);
    assert_int_equal(router_topology(f.router)->entry[5].up, 0);
    fixture_close(&f);
}

TEST(a_dialler_that_is_not_the_neighbour_is_told_why)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE], versions[80];
    struct peer_hello good, bad;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_hello(&f, minus, &good, dims);
    fixture_close(&f);
    bad = good, bad.version = PROTOCOL_VERSION + 1;
    (void)snprintf(versions, sizeof versions, "version %u.%u, node 5 speaks version %u.%u",
                   PROTOCOL_VERSION + 1, PROTOCOL_MINOR, PROTOCOL_VERSION, PROTOCOL_MINOR);
    check_stranger(&bad, versions);
    bad = good, bad.minor = PROTOCOL_MINOR + 2;
    (void)snprintf(versions, sizeof versions, "version %u.%u, node 5 speaks version %u.%u",
                   PROTOCOL_VERSION, PROTOCOL_MINOR + 2, PROTOCOL_VERSION, PROTOCOL_MINOR);
    check_stranger(&bad, versions);
    bad = good, bad.dims = (char[]){"4x8"};
    check_stranger(&bad, "torus 4x8, node 5 is in a torus 4x4");
    bad = good, bad.dims = (char[]){"\n\x1b"};
    check_stranger(&bad, "is in a torus ??");
    bad = good, bad.rank++;
    check_stranger(&bad, "node 2 port +0 is connected to node 5 port -0");
    bad = good, bad.port = 3;
    check_stranger(&bad, "node 1 port -1");
    bad = good, bad.port = UINT32_MAX;
    check_stranger(&bad, "node 1 port ? is");
}

/* The minor version of the neighbour counts before it has stated its links. */
TEST(a_neighbour_may_be_one_minor_version_away)
{
    for (uint32_t minor = PROTOCOL_MINOR - 1; minor <= PROTOCOL_MINOR + 1; minor++) {
        struct router_fixture f;
        fixture_open(&f, "4x4", 5, NULL);
        assert_int_equal(router_least_minor(f.router), PROTOCOL_MINOR);
        f.minor = minor;
        fixture_link_up(&f, minus);
        assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
        assert_int_equal(router_least_minor(f.router),
                         minor < PROTOCOL_MINOR ? minor : PROTOCOL_MINOR);
        fixture_say_unknown(f.up[minus]);
        /* Only a newer neighbour may send what this node does not know. */
        assert_int_equal(fixture_state_of(&f, minus) == PORT_UP, minor > PROTOCOL_MINOR);
        fixture_close(&f);
    }
}

ROUTER_TEST(strangers_say_hello_first_and_briefly)
{
    uint8_t prefix[FRAME_PREFIX_SIZE];

    struct fixture_connection *c = fixture_connect(f, minus, false);
    fixture_say_heartbeat(c);
    assert_null(c->link);
    assert_contains(c->last, "did not begin with a hello");
    c = fixture_connect(f, minus, false);
    frame_prefix_write(prefix, FRAME_MAX_STRANGER_HEAD + 1, 0);
    fixture_feed(c, prefix, sizeof prefix);
    assert_null(c->link);
    c = fixture_connect(f, minus, false);
    frame_prefix_write(prefix, 10, 1);
    fixture_feed(c, prefix, sizeof prefix);
    assert_null(c->link);
}

ROUTER_TEST(hello_is_said_once)
{
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;

    fixture_link_up(f, minus);
    fixture_hello(f, minus, &hello, dims);
    fixture_say_hello(f->up[minus], &hello);
    assert_null(f->up[minus]->link);
    assert_contains(f->up[minus]->last, "hello twice");
    assert_int_equal(router_topology(f->router)->entry[5].up, 0);
}

ROUTER_TEST(strangers_do_not_touch_a_link_that_is_up)
{
    struct fixture_connection *stranger[40];

    fixture_link_up(f, minus);
    unsigned open = 0;
    for (int i = 0; i < 40; i++)
        stranger[i] = fixture_connect(f, minus, false);
    for (int i = 0; i < 40; i++)
        open += stranger[i]->link != NULL;
    assert_in_range(open, 1, 32); /* bounded, and not the last one is turned away */
    assert_non_null(stranger[39]->link);
    fixture_say_heartbeat(stranger[39]);
    assert_non_null(f->up[minus]->link);
    assert_int_equal(fixture_state_of(f, minus), PORT_UP);
}

ROUTER_TEST(a_new_connection_of_the_neighbour_replaces_the_old_one)
{
    fixture_link_up(f, minus);
    struct fixture_connection *old = f->up[minus];
    unsigned changes = f->topology_changes;
    fixture_link_up(f, minus);
    assert_null(old->link);
    assert_non_null(f->up[minus]->link);
    assert_int_equal(f->topology_changes, changes + 2); /* down and up: an exchange must notice */
}

ROUTER_TEST(a_connection_without_a_hello_is_closed)
{
    struct fixture_connection *c = fixture_connect(f, minus, false);
    fixture_pass(f, ROUTER_HELLO_TIME - 1);
    assert_non_null(c->link);
    fixture_pass(f, 1);
    assert_null(c->link);
}

/* Discards what the router sends. Returns the bytes of its probe, or 0. *answered: whether it has answered a probe. */
static size_t probe_sent(struct fixture_connection *c, bool *answered)
{
    size_t bytes = 0;
    struct peer_message *head;

    *answered = false;
    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        if (head->kind == PEER_PROBE)
            bytes = head->probe.filler.len;
        *answered |= head->kind == PEER_PROBE_ANSWERED;
        message_forget(head);
    }
    return bytes;
}

TEST(a_link_is_up_when_full_frames_have_passed_both_ways)
{
    for (unsigned first = 0; first < 2; first++) {
        struct router_fixture f;
        bool answered;
        fixture_open(&f, "4x4", 5, NULL);
        struct fixture_connection *c = fixture_shake(&f, minus, 8948);
        assert_int_equal(probe_sent(c, &answered), 2 * 8948);
        assert_false(answered);
        assert_int_equal(fixture_state_of(&f, minus), PORT_PROBING);
        if (first == 0)
            fixture_say_probe(c);
        else
            fixture_answer_probe(c);
        (void)probe_sent(c, &answered);
        assert_int_equal(answered, first == 0);
        assert_int_equal(fixture_state_of(&f, minus), PORT_PROBING);
        assert_int_equal(router_topology(f.router)->entry[5].up, 0);
        if (first == 0)
            fixture_answer_probe(c);
        else
            fixture_say_probe(c);
        assert_int_equal(fixture_state_of(&f, minus), PORT_UP);
        fixture_say_probe(c); /* once is enough */
        assert_null(c->link);
        c = fixture_shake(&f, minus, 8948);
        fixture_say_heartbeat(c); /* nothing else before it */
        assert_null(c->link);
        assert_contains(c->last, "neither a probe nor");
        fixture_close(&f);
    }
}

/* The reason is reported early, and the probe repeated until the kernel may have found smaller packets. */
ROUTER_TEST(a_cable_that_drops_the_probe_is_named)
{
    static const char question[] = "same MTU (9000 here)";
    struct port_info info;

    struct fixture_connection *c = fixture_shake(f, plus, 8948);
    c->stat.unacked = 2 * 8948;
    c->stat.mtu = 9000;
    fixture_pass(f, ROUTER_PROBE_TELL - 1);
    router_port_info(f->router, plus, &info);
    assert_string_equal(info.reason, "");
    fixture_pass(f, 1);
    fixture_check_reason(f, plus, question);
    assert_int_equal(fixture_state_of(f, plus), PORT_PROBING);
    c->stat.acked += 1000; /* it passes after all, slowly */
    fixture_pass(f, ROUTER_PROBE_TIME - 1);
    assert_non_null(c->link);
    fixture_pass(f, ROUTER_PROBE_TIME);
    assert_null(c->link);
    fixture_check_reason(f, plus, question);
    c = fixture_shake(f, minus, 8948); /* the other way */
    c->stat.mtu = 9000;
    fixture_pass(f, ROUTER_PROBE_TIME);
    assert_null(c->link);
    router_port_info(f->router, minus, &info);
    assert_contains(info.reason, "same MTU (9000 here)");
}

/* While the neighbour probes, strangers do not replace its connection; its own next connection does. */
ROUTER_TEST(a_neighbour_that_probes_is_not_a_stranger)
{
    struct fixture_connection *c = fixture_shake(f, minus, 8948);
    for (unsigned i = 0; i < 40; i++)
        (void)fixture_connect(f, minus, false);
    assert_non_null(c->link);
    struct fixture_connection *next = fixture_shake(f, minus, 8948);
    assert_null(c->link);
    fixture_pass_probe(next);
    assert_int_equal(fixture_state_of(f, minus), PORT_UP);
}

/* When a link that is up counts as lost. */

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

/* Only a host that forwards IP packets checks this; the link stays up, and is used again after answers have come for a
 * while. */
ROUTER_TEST(a_link_is_quiet_long_before_it_is_given_up)
{
    fixture_link_up(f, minus);
    struct connection_stat *stat = &f->up[minus]->stat;
    stat->in_flight = true;
    fixture_pass(f, 6 * QUIET_BEAT);
    assert_false(is_quiet(f));
    stat->acked++;
    router_forward(f->router, true);
    fixture_pass(f, QUIET_BEATS * QUIET_BEAT - 2 * MILLISECONDS);
    assert_false(is_quiet(f));
    fixture_pass(f, QUIET_BEAT + 4 * MILLISECONDS);
    assert_true(is_quiet(f));
    assert_int_equal(fixture_state_of(f, minus), PORT_UP);
    for (uint32_t i = 0; i < QUIET_CALM - 1; i++) {
        stat->acked++;
        fixture_pass(f, QUIET_BEAT);
    }
    assert_true(is_quiet(f));
    for (uint32_t i = 0; i < 3; i++) {
        stat->acked++;
        fixture_pass(f, QUIET_BEAT);
    }
    assert_false(is_quiet(f));
}

/* A queue on the way, a node that does not run itself, and a neighbour without a processor are no silence. */
ROUTER_TEST(a_slow_link_is_not_quiet)
{
    fixture_link_up(f, minus);
    struct connection_stat *stat = &f->up[minus]->stat;
    router_forward(f->router, true);
    *stat = (struct connection_stat){.in_flight = true, .rtt_us = 200000};
    fixture_pass(f, (QUIET_BEATS + 3) * QUIET_BEAT);
    assert_false(is_quiet(f));
    stat->rtt_us = 100;
    for (uint32_t i = 0; i < 10; i++) { /* this node gets a processor now and then */
        stat->acked++;
        f->now += 700 * MILLISECONDS;
        router_tick(f->router);
        assert_false(is_quiet(f));
    }
    for (uint32_t i = 0; i < 20; i++) { /* the neighbour's system acknowledges late */
        stat->acked += i % QUIET_BEATS == 0;
        fixture_pass(f, QUIET_BEAT);
        assert_false(is_quiet(f));
    }
}

/* To ask the kernel takes longer than to read a frame. What was acknowledged while nobody asked does not delay anything. */
ROUTER_TEST(acknowledgements_are_asked_for_when_nothing_arrives)
{
    router_set_heartbeats(f->router, 60 * SECONDS, 60 * SECONDS);
    fixture_link_up(f, minus);
    router_forward(f->router, true);
    f->up[minus]->stat.in_flight = true;
    fixture_say_heartbeat(f->up[minus]);
    fixture_pass(f, QUIET_BEAT - 1); /* what is said from now on comes just before a look */
    f->up[minus]->stats = 0;
    for (uint32_t i = 0; i < 10; i++) {
        fixture_say_heartbeat(f->up[minus]);
        f->up[minus]->stat.acked++;
        fixture_pass(f, QUIET_BEAT);
    }
    assert_int_equal(f->up[minus]->stats, 0);
    fixture_pass(f, (QUIET_BEATS - 1) * QUIET_BEAT);
    assert_false(is_quiet(f));
    fixture_pass(f, QUIET_BEAT);
    assert_true(is_quiet(f));
    assert_int_equal(f->up[minus]->stats, QUIET_BEATS);
}

/* Small frames arrive, but sent bytes are no longer acknowledged. */
ROUTER_TEST(a_link_that_loses_large_packets_is_given_up)
{
    fixture_link_up(f, minus);
    struct connection_stat *stat = &f->up[minus]->stat;
    *stat = (struct connection_stat){.acked = 7, .in_flight = true, .unacked = 8948, .mtu = 9000};
    for (uint64_t passed = 0; passed < ROUTER_UNACKED; passed += 200 * MILLISECONDS) {
        assert_non_null(f->up[minus]->link);
        fixture_say_heartbeat(f->up[minus]);
        fixture_pass(f, 200 * MILLISECONDS);
    }
    fixture_say_heartbeat(f->up[minus]);
    fixture_pass(f, 2 * ROUTER_HEARTBEAT);
    assert_null(f->up[minus]->link);
    fixture_check_reason(f, minus, "sent 8948 bytes");
    fixture_check_reason(f, minus, "same MTU (9000 here)");
}

ROUTER_TEST(a_slow_heartbeat_gets_more_time)
{
    struct peer_message beat = {.kind = PEER_HEARTBEAT, .heartbeat = {4000}};

    fixture_link_up(f, minus);
    for (int i = 0; i < 3; i++) {
        fixture_say(f->up[minus], &beat, NULL, 0);
        fixture_pass(f, 12 * SECONDS - 1);
        assert_non_null(f->up[minus]->link);
    }
    beat.heartbeat.interval_ms = UINT32_MAX; /* but not any time */
    fixture_say(f->up[minus], &beat, NULL, 0);
    fixture_pass(f, 15 * SECONDS + ROUTER_HEARTBEAT);
    assert_null(f->up[minus]->link);
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
    assert_contains(f.up[0]->last, " 20 s");
    fixture_close(&f);
}

ROUTER_TEST(we_are_not_silent_ourselves)
{
    unsigned beats = 0;

    router_set_heartbeats(f->router, 125 * MILLISECONDS, ROUTER_SILENCE);
    fixture_link_up(f, minus);
    for (int i = 0; i < 10; i++) {
        fixture_pass(f, SECONDS);
        fixture_say_heartbeat(f->up[minus]);
        struct peer_message *head;
        while ((head = fixture_next(f->up[minus], NULL, 0, NULL)) != NULL) {
            if (head->kind == PEER_HEARTBEAT) {
                assert_int_equal(head->heartbeat.interval_ms, 125);
                beats++;
            }
            message_forget(head);
        }
    }
    assert_in_range(beats, 79, 81);
}

/* A process that was stopped for a while, or again and again, must not blame its peers for its own
 * absence. */
ROUTER_TEST(time_that_we_slept_is_not_held_against_the_peer)
{
    fixture_link_up(f, minus);
    f->up[minus]->stat.in_flight = true;
    for (unsigned beats = 0; beats + 1 < ROUTER_SILENCE / ROUTER_HEARTBEAT; beats++) {
        f->now += 60 * SECONDS;
        router_tick(f->router);
        assert_non_null(f->up[minus]->link);
    }
    fixture_say_heartbeat(f->up[minus]);
    fixture_pass(f, ROUTER_SILENCE - 1);
    assert_non_null(f->up[minus]->link);
    fixture_pass(f, 2 * ROUTER_HEARTBEAT);
    assert_null(f->up[minus]->link);
}
