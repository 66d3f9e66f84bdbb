/* Links: who is let in, when they are given up, what leaves first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/router/frames/head_check.h"
#include "router_fixture.h"

static const unsigned plus = 0, minus = 1;

static enum port_state state_of(struct router_fixture *f, unsigned port)
{
    struct port_info info;
    router_port_info(f->router, port, &info);
    return info.state;
}

static void the_plus_side_dials_and_says_hello_first(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    assert_int_equal(f.dials[0], 0);
    router_start(f.router);
    for (unsigned port = 0; port < 4; port++)
        assert_int_equal(f.dials[port], torus_port_direction(port) > 0);
    assert_int_equal(state_of(&f, plus), PORT_DIALLING);
    assert_int_equal(state_of(&f, minus), PORT_WAITING);
    struct fixture_connection *c = fixture_connect(&f, plus, true);
    Peer__Head *head = fixture_next(c, NULL, 0, NULL);
    assert_int_equal(head->kind_case, PEER__HEAD__KIND_HELLO);
    assert_string_equal(head->hello->dims, "4x4");
    assert_int_equal(head->hello->rank, 5);
    assert_int_equal(head->hello->port, plus);
    assert_int_equal(head->hello->version, PROTOCOL_VERSION);
    peer__head__free_unpacked(head, NULL);
    assert_null(fixture_next(c, NULL, 0, NULL)); /* nothing else before the peer's hello */
    assert_int_equal(state_of(&f, plus), PORT_HELLO);
    fixture_close(&f);
}

static void a_valid_hello_brings_the_link_up(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    for (unsigned port = 0; port < 4; port++) {
        fixture_link_up(&f, port);
        assert_int_equal(state_of(&f, port), PORT_UP);
        assert_int_equal(f.topology_changes, port + 1);
    }
    assert_int_equal(router_topology(f.router)->entry[5].up, 0xf);
    fixture_close(&f);
}

static void check_stranger(Peer__Hello *hello, const char *text)
{
    struct router_fixture f;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    fixture_say_hello(c, hello);
    assert_null(c->link);
    if (strstr(c->last, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, c->last);
    assert_int_equal(router_topology(f.router)->entry[5].up, 0);
    fixture_close(&f);
}

static void who_is_not_the_neighbour_is_told_why(void **state)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE], versions[80];
    Peer__Hello good, bad;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_hello(&f, minus, &good, dims);
    fixture_close(&f);
    bad = good, bad.version = PROTOCOL_VERSION + 1;
    (void)snprintf(versions, sizeof versions,
                   "speaks protocol version %u, node 5 speaks version %u", PROTOCOL_VERSION + 1,
                   PROTOCOL_VERSION);
    check_stranger(&bad, versions);
    bad = good, bad.dims = (char[]){"4x8"};
    check_stranger(&bad, "is in a torus 4x8, node 5 is in a torus 4x4");
    bad = good, bad.dims = (char[]){"\n\x1b"};
    check_stranger(&bad, "is in a torus ??");
    bad = good, bad.rank++;
    check_stranger(
        &bad, "wrong cabling: node 2 port +0 is connected to node 5 port -0, which expects node 1");
    bad = good, bad.port = 3;
    check_stranger(&bad, "wrong cabling: node 1 port -1");
    bad = good, bad.port = UINT32_MAX;
    check_stranger(&bad, "node 1 port ? is");
}

static void say_heartbeat(struct fixture_connection *c)
{
    Peer__Heartbeat beat = PEER__HEARTBEAT__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    head.kind_case = PEER__HEAD__KIND_HEARTBEAT;
    head.heartbeat = &beat;
    fixture_say(c, &head, NULL, 0);
}

static void strangers_say_hello_first_and_briefly(void **state)
{
    struct router_fixture f;
    uint8_t prefix[FRAME_PREFIX_SIZE];
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    say_heartbeat(c);
    assert_null(c->link);
    assert_non_null(strstr(c->last, "did not say hello first"));
    c = fixture_connect(&f, minus, false);
    frame_prefix_write(prefix, FRAME_MAX_STRANGER_HEAD + 1, 0);
    fixture_feed(c, prefix, sizeof prefix);
    assert_null(c->link);
    c = fixture_connect(&f, minus, false);
    frame_prefix_write(prefix, 10, 1);
    fixture_feed(c, prefix, sizeof prefix);
    assert_null(c->link);
    fixture_close(&f);
}

static void hello_is_said_once(void **state)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE];
    Peer__Hello hello;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    fixture_hello(&f, minus, &hello, dims);
    fixture_say_hello(f.up[minus], &hello);
    assert_null(f.up[minus]->link);
    assert_non_null(strstr(f.up[minus]->last, "hello twice"));
    assert_int_equal(router_topology(f.router)->entry[5].up, 0);
    fixture_close(&f);
}

static void strangers_do_not_touch_a_link_that_is_up(void **state)
{
    struct router_fixture f;
    struct fixture_connection *stranger[40];
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    unsigned open = 0;
    for (int i = 0; i < 40; i++)
        stranger[i] = fixture_connect(&f, minus, false);
    for (int i = 0; i < 40; i++)
        open += stranger[i]->link != NULL;
    assert_in_range(open, 1, 32); /* bounded, and not the last one is turned away */
    assert_non_null(stranger[39]->link);
    say_heartbeat(stranger[39]);
    assert_non_null(f.up[minus]->link);
    assert_int_equal(state_of(&f, minus), PORT_UP);
    fixture_close(&f);
}

static void a_new_connection_of_the_neighbour_replaces_the_old_one(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    struct fixture_connection *old = f.up[minus];
    unsigned changes = f.topology_changes;
    fixture_link_up(&f, minus);
    assert_null(old->link);
    assert_non_null(f.up[minus]->link);
    assert_int_equal(f.topology_changes, changes + 2); /* down and up: an exchange must notice */
    fixture_close(&f);
}

static void pass(struct router_fixture *f, uint64_t time)
{
    for (uint64_t end = f->now + time; f->now < end;) {
        uint64_t at = router_deadline(f->router);
        f->now = at < end ? (at > f->now ? at : f->now + 1) : end;
        router_tick(f->router);
    }
}

static void check_reason(struct router_fixture *f, unsigned port, const char *reason)
{
    struct port_info info;

    router_port_info(f->router, port, &info);
    assert_string_equal(info.reason, reason);
}

/* Nothing comes, and what is sent is not acknowledged: the limit is that of the settings. */
static void a_silent_link_is_given_up(void **state)
{
    static const uint64_t times[][2] = {{ROUTER_HEARTBEAT, ROUTER_SILENCE},
                                        {100 * MILLISECONDS, 3 * SECONDS},
                                        {1 * SECONDS, 10 * SECONDS}};
    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        const uint64_t interval = times[i][0], silence = times[i][1];
        struct router_fixture f;
        char expected[40];
        fixture_open(&f, "4x4", 5, NULL);
        router_set_heartbeats(f.router, interval, silence);
        fixture_link_up(&f, minus);
        f.up[minus]->stat.in_flight = true;
        for (int k = 0; k < 3; k++) {
            pass(&f, silence - 1);
            assert_non_null(f.up[minus]->link);
            if (k % 2 == 0 || 2 * silence > ROUTER_STALL)
                say_heartbeat(f.up[minus]);
            if (k % 2 != 0 || 2 * silence > ROUTER_UNACKED)
                f.up[minus]->stat.acked++;
        }
        pass(&f, silence - 1);
        assert_non_null(f.up[minus]->link);
        pass(&f, interval + 1);
        assert_null(f.up[minus]->link);
        assert_int_equal(router_topology(f.router)->entry[5].up, 0);
        (void)snprintf(expected, sizeof expected, "silent for %g s", (double)silence / SECONDS);
        check_reason(&f, minus, expected);
        fixture_close(&f);
    }
}

/* Its system takes what is sent, or has said that there is no room: it is slow, and the link works. */
static void a_neighbour_that_does_not_run_is_waited_for(void **state)
{
    (void)state;
    for (int full = 0; full < 2; full++) {
        struct router_fixture f;
        fixture_open(&f, "4x4", 5, NULL);
        fixture_link_up(&f, minus);
        struct connection_stat *stat = &f.up[minus]->stat;
        say_heartbeat(f.up[minus]);
        for (uint64_t passed = 0; passed < ROUTER_STALL; passed += 100 * MILLISECONDS) {
            assert_non_null(f.up[minus]->link);
            stat->in_flight = full == 0;
            stat->acked += full == 0;
            pass(&f, 100 * MILLISECONDS);
        }
        pass(&f, ROUTER_HEARTBEAT);
        assert_null(f.up[minus]->link);
        check_reason(&f, minus, "silent for 5 s: torusd there is stopped or overloaded");
        fixture_close(&f);
    }
}

/* Small frames come, and of what is sent nothing is acknowledged any more. */
static void a_link_that_loses_large_packets_is_given_up(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    struct connection_stat *stat = &f.up[minus]->stat;
    *stat = (struct connection_stat){.acked = 7, .in_flight = true, .unacked = 8948, .mtu = 9000};
    for (uint64_t passed = 0; passed < ROUTER_UNACKED; passed += 200 * MILLISECONDS) {
        assert_non_null(f.up[minus]->link);
        say_heartbeat(f.up[minus]);
        pass(&f, 200 * MILLISECONDS);
    }
    say_heartbeat(f.up[minus]);
    pass(&f, 2 * ROUTER_HEARTBEAT);
    assert_null(f.up[minus]->link);
    check_reason(&f, minus, "sent 8948 bytes, none acknowledged: does the MTU agree (9000 here)?");
    fixture_close(&f);
}

/* A connection whose handshake is over; what the router has said is taken away. */
static struct fixture_connection *shaken(struct router_fixture *f, unsigned port)
{
    struct fixture_connection *c = fixture_connect(f, port, torus_port_direction(port) > 0);
    char dims[TORUS_TEXT_SIZE];
    Peer__Hello hello;

    fixture_hello(f, port, &hello, dims);
    c->stat.segment = 8948;
    fixture_say_hello(c, &hello);
    return c;
}

/* Takes away what the router sends. Returns the bytes of its probe, or 0; *answered: it has answered one. */
static size_t probe_sent(struct fixture_connection *c, bool *answered)
{
    size_t bytes = 0;
    Peer__Head *head;

    *answered = false;
    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        if (head->kind_case == PEER__HEAD__KIND_PROBE)
            bytes = head->probe->filler.len;
        *answered |= head->kind_case == PEER__HEAD__KIND_PROBE_ANSWERED;
        peer__head__free_unpacked(head, NULL);
    }
    return bytes;
}

static void a_link_is_up_when_full_frames_have_passed_both_ways(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct router_fixture f;
        bool answered;
        fixture_open(&f, "4x4", 5, NULL);
        struct fixture_connection *c = shaken(&f, minus);
        assert_int_equal(probe_sent(c, &answered), 2 * 8948);
        assert_false(answered);
        assert_int_equal(state_of(&f, minus), PORT_PROBING);
        if (first == 0)
            fixture_say_probe(c);
        else
            fixture_answer_probe(c);
        (void)probe_sent(c, &answered);
        assert_int_equal(answered, first == 0);
        assert_int_equal(state_of(&f, minus), PORT_PROBING);
        assert_int_equal(router_topology(f.router)->entry[5].up, 0);
        if (first == 0)
            fixture_answer_probe(c);
        else
            fixture_say_probe(c);
        assert_int_equal(state_of(&f, minus), PORT_UP);
        fixture_say_probe(c); /* once is enough */
        assert_null(c->link);
        c = shaken(&f, minus);
        say_heartbeat(c); /* nothing else before it */
        assert_null(c->link);
        assert_non_null(strstr(c->last, "something else than a probe"));
        fixture_close(&f);
    }
}

/* It is said early, and tried until the kernel may have found smaller packets. */
static void a_cable_that_drops_the_probe_is_named(void **state)
{
    static const char question[] =
        "sent 17896 bytes, none acknowledged: does the MTU agree (9000 here)?";
    struct router_fixture f;
    struct port_info info;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = shaken(&f, plus);
    c->stat.unacked = 2 * 8948;
    c->stat.mtu = 9000;
    pass(&f, ROUTER_PROBE_TELL - 1);
    router_port_info(f.router, plus, &info);
    assert_string_equal(info.reason, "");
    pass(&f, 1);
    check_reason(&f, plus, question);
    assert_int_equal(state_of(&f, plus), PORT_PROBING);
    c->stat.acked += 1000; /* it passes after all, slowly */
    pass(&f, ROUTER_PROBE_TIME - 1);
    assert_non_null(c->link);
    pass(&f, ROUTER_PROBE_TIME);
    assert_null(c->link);
    check_reason(&f, plus, question);
    c = shaken(&f, minus); /* the other way */
    c->stat.mtu = 9000;
    pass(&f, ROUTER_PROBE_TIME);
    assert_null(c->link);
    router_port_info(f.router, minus, &info);
    assert_non_null(
        strstr(info.reason, "nothing of its own probe has come: does the MTU agree (9000 here)"));
    fixture_close(&f);
}

/* Strangers do not drive out the neighbour while it probes; its own next connection does. */
static void who_probes_is_not_a_stranger(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = shaken(&f, minus);
    for (unsigned i = 0; i < 40; i++)
        (void)fixture_connect(&f, minus, false);
    assert_non_null(c->link);
    struct fixture_connection *next = shaken(&f, minus);
    assert_null(c->link);
    fixture_pass_probe(next);
    assert_int_equal(state_of(&f, minus), PORT_UP);
    fixture_close(&f);
}

static void who_beats_slowly_is_given_more_time(void **state)
{
    Peer__Heartbeat beat = PEER__HEARTBEAT__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    head.kind_case = PEER__HEAD__KIND_HEARTBEAT;
    head.heartbeat = &beat;
    beat.interval_ms = 4000;
    for (int i = 0; i < 3; i++) {
        fixture_say(f.up[minus], &head, NULL, 0);
        pass(&f, 12 * SECONDS - 1);
        assert_non_null(f.up[minus]->link);
    }
    beat.interval_ms = UINT32_MAX; /* but not any time */
    fixture_say(f.up[minus], &head, NULL, 0);
    pass(&f, 15 * SECONDS + ROUTER_HEARTBEAT);
    assert_null(f.up[minus]->link);
    fixture_close(&f);
}

/* A length that was damaged on its way swallows all that follows, heartbeats too. */
static void a_link_without_whole_frames_is_given_up(void **state)
{
    static const uint8_t endless[] = {0, 0, 0, 30, 0, 0, 200, 0}, beat[] = {0};
    struct router_fixture f;

    (void)state;
    fixture_open(&f, "4", 0, NULL);
    fixture_link_up(&f, 0);
    fixture_feed(f.up[0], endless, sizeof endless);
    for (uint64_t passed = 0; passed + SECONDS < ROUTER_FRAME_TIME; passed += SECONDS) {
        assert_non_null(f.up[0]->link);
        pass(&f, SECONDS);
        fixture_feed(f.up[0], beat, sizeof beat);
    }
    pass(&f, SECONDS);
    assert_null(f.up[0]->link);
    assert_string_equal(f.up[0]->last, "no complete frame for 20 s");
    fixture_close(&f);
}

static void we_are_not_silent_ourselves(void **state)
{
    struct router_fixture f;
    unsigned beats = 0;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    router_set_heartbeats(f.router, 125 * MILLISECONDS, ROUTER_SILENCE);
    fixture_link_up(&f, minus);
    for (int i = 0; i < 10; i++) {
        pass(&f, SECONDS);
        say_heartbeat(f.up[minus]);
        Peer__Head *head;
        while ((head = fixture_next(f.up[minus], NULL, 0, NULL)) != NULL) {
            if (head->kind_case == PEER__HEAD__KIND_HEARTBEAT) {
                assert_int_equal(head->heartbeat->interval_ms, 125);
                beats++;
            }
            peer__head__free_unpacked(head, NULL);
        }
    }
    assert_in_range(beats, 79, 81);
    fixture_close(&f);
}

/* A process that was stopped for a while, or again and again, must not blame its peers for its own
 * absence. */
static void time_that_we_slept_is_not_held_against_the_peer(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    f.up[minus]->stat.in_flight = true;
    for (unsigned beats = 0; beats + 1 < ROUTER_SILENCE / ROUTER_HEARTBEAT; beats++) {
        f.now += 60 * SECONDS;
        router_tick(f.router);
        assert_non_null(f.up[minus]->link);
    }
    say_heartbeat(f.up[minus]);
    pass(&f, ROUTER_SILENCE - 1);
    assert_non_null(f.up[minus]->link);
    pass(&f, 2 * ROUTER_HEARTBEAT);
    assert_null(f.up[minus]->link);
    fixture_close(&f);
}

static void who_never_says_hello_is_closed(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    struct fixture_connection *c = fixture_connect(&f, minus, false);
    pass(&f, ROUTER_HELLO_TIME - 1);
    assert_non_null(c->link);
    pass(&f, 1);
    assert_null(c->link);
    fixture_close(&f);
}

static void dialling_goes_on_for_ever_and_slows_down(void **state)
{
    struct router_fixture f;
    uint64_t began, longest = 0;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    router_start(f.router);
    for (int i = 0; i < 30; i++) {
        unsigned dials = f.dials[plus];
        began = f.now;
        router_dial_failed(f.router, plus, "connection refused");
        assert_int_equal(state_of(&f, plus), PORT_WAITING);
        while (f.dials[plus] == dials)
            pass(&f, 1 * MILLISECONDS);
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
    pass(&f, 60 * MILLISECONDS);
    assert_int_equal(f.dials[plus], dials + 1);
    fixture_close(&f);
}

static void a_link_without_a_carrier_is_given_up(void **state)
{
    struct router_fixture f;
    (void)state;
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
    check_reason(&f, minus, "no carrier on eth1");
    router_carrier(f.router, minus, "no carrier on eth1, which is set down");
    check_reason(&f, minus, "no carrier on eth1, which is set down");
    /* What connects nevertheless is let in. */
    fixture_link_up(&f, minus);
    assert_int_equal(state_of(&f, minus), PORT_UP);
    router_carrier(f.router, minus, NULL);
    assert_int_equal(state_of(&f, minus), PORT_UP);
    fixture_close(&f);
}

/* Not only after the pause that has grown meanwhile, and whether or not a dial is under way. */
static void a_carrier_that_is_back_is_dialled_at_once(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    router_start(f.router);
    fixture_link_up(&f, plus);
    for (int waiting = 0; waiting < 2; waiting++) {
        router_carrier(f.router, plus, "no carrier on eth0");
        for (unsigned dials = f.dials[plus], i = 0; i < 10; i++) {
            while (f.dials[plus] == dials)
                pass(&f, 1 * MILLISECONDS);
            dials = f.dials[plus];
            if (i < 9 || waiting != 0)
                router_dial_failed(f.router, plus, "timed out");
        }
        check_reason(&f, plus, "no carrier on eth0"); /* which is why dialling fails */
        unsigned dials = f.dials[plus];
        router_carrier(f.router, plus, NULL);
        assert_int_equal(f.dials[plus], dials + 1);
        check_reason(&f, plus, "the carrier is back");
        router_carrier(f.router, plus, NULL);
        assert_int_equal(f.dials[plus], dials + 1);
        fixture_link_up(&f, plus);
    }
    fixture_close(&f);
}

static void stay_up(struct router_fixture *f, unsigned port, uint64_t time)
{
    for (uint64_t passed = 0; passed < time; passed += SECONDS) {
        pass(f, SECONDS);
        say_heartbeat(f->up[port]);
    }
}

/* Of two connections of ours the second replaces the first, and that is all: it is not dialled for the one
 * that has gone, in whichever order the two ends notice, else a third would replace the second. */
static void a_connection_that_has_been_replaced_is_not_dialled_again(void **state)
{
    (void)state;
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
            pass(&f, 2 * SECONDS);
            assert_int_equal(f.dials[plus], dials);
            /* That one is as much as there is: when it goes, it is dialled. */
            link_closed(next->link, "connection reset by peer");
            next->link = NULL;
            pass(&f, 2 * SECONDS);
            assert_int_equal(f.dials[plus], dials + 1);
        } else {
            fixture_link_up(&f, plus);
            assert_null(old->link);
            stay_up(&f, plus, 20 * SECONDS);
            assert_int_equal(f.dials[plus], dials);
        }
        fixture_close(&f);
    }
}

static void carrier(struct router_fixture *f, unsigned port, uint64_t away)
{
    router_carrier(f->router, port, "no carrier on eth0");
    pass(f, away);
    router_carrier(f->router, port, NULL);
}

static bool port_dialled(unsigned port)
{
    return torus_port_direction(port) > 0;
}

/* It is kept out for so long after the last loss, and then dialled or listened on again. */
static void check_held(struct router_fixture *f, unsigned port, uint64_t time)
{
    const unsigned dials = f->dials[port];
    struct port_info info;

    router_port_info(f->router, port, &info);
    assert_int_equal(info.state, PORT_HELD);
    assert_true(info.held_ns == time);
    pass(f, time - 1);
    router_port_info(f->router, port, &info);
    assert_int_equal(info.state, PORT_HELD);
    assert_true(info.held_ns == 1);
    assert_int_equal(f->dials[port], dials);
    pass(f, 1);
    assert_int_not_equal(state_of(f, port), PORT_HELD);
    assert_int_equal(f->dials[port], dials + (torus_port_direction(port) > 0));
    fixture_link_up(f, port);
}

static void a_link_that_flaps_has_to_be_quiet(void **state)
{
    (void)state;
    for (unsigned port = 0; port < 2; port++) {
        struct router_fixture f;
        fixture_open(&f, "3", 0, NULL);
        fixture_link_up(&f, port);
        for (int i = 0; i < 2; i++) { /* is used at once */
            carrier(&f, port, 1 * SECONDS);
            fixture_link_up(&f, port);
        }
        carrier(&f, port, 5 * SECONDS);
        check_reason(&f, port, "flaps: used again when it has been quiet for 2.0 s more");
        struct fixture_connection *c = fixture_connect(&f, port, port_dialled(port));
        say_heartbeat(c);
        assert_null(c->link);
        assert_string_equal(c->last,
                            "node 0 keeps this link out because it flaps, until it is quiet");
        pass(&f, 1 * SECONDS);
        carrier(&f, port, 100 * SECONDS); /* it has not been quiet: the time begins anew */
        check_held(&f, port, ROUTER_HOLD);
        for (uint64_t hold = 2 * ROUTER_HOLD; hold <= ROUTER_HOLD_MOST; hold *= 2) {
            stay_up(&f, port, ROUTER_HOLD_FORGET / 2);
            carrier(&f, port, 1);
            check_held(&f, port, hold);
        }
        carrier(&f, port, 1);
        check_held(&f, port, ROUTER_HOLD_MOST);
        stay_up(&f, port, ROUTER_HOLD_FORGET);
        for (int i = 0; i < 2; i++) { /* that is forgotten */
            carrier(&f, port, 1);
            assert_int_not_equal(state_of(&f, port), PORT_HELD);
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
        pass(f, 100 * MILLISECONDS);
    }
}

/* Silence is a loss as well, but not a daemon that does not run, or ends. */
static void what_counts_as_flapping(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "3", 0, NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(state_of(&f, minus), PORT_HELD);
        fixture_link_up(&f, minus);
        fall_silent(&f, minus, false);
    }
    assert_int_equal(state_of(&f, minus), PORT_HELD);
    for (int i = 0; i < 4; i++) {
        fixture_link_up(&f, plus);
        say_heartbeat(f.up[plus]);
        if (i % 2 == 0) {
            fall_silent(&f, plus, true);
        } else {
            link_closed(f.up[plus]->link, "connection reset");
            f.up[plus]->link = NULL;
        }
        assert_int_not_equal(state_of(&f, plus), PORT_HELD);
    }
    fixture_close(&f);
}

/* However long each of them takes to notice. */
static void losses_that_are_noticed_late_count_as_well(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "3", 0, NULL);
    router_set_heartbeats(f.router, ROUTER_HEARTBEAT, 8 * SECONDS);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(state_of(&f, minus), PORT_HELD);
        fixture_link_up(&f, minus);
        stay_up(&f, minus, 2 * SECONDS);
        fall_silent(&f, minus, false);
    }
    assert_int_equal(state_of(&f, minus), PORT_HELD);
    fixture_close(&f);
}

static struct outgoing *frame_of(struct router_fixture *f, const Peer__Head *head)
{
    struct outgoing *frame = outgoing_new(router_outgoing(f->router));

    assert_non_null(frame);
    assert_int_equal(outgoing_set_head(frame, head), 0);
    return frame;
}

static void what_was_to_be_sent_on_a_lost_link_is_dropped(void **state)
{
    struct router_fixture f;
    Peer__Heartbeat beat = PEER__HEARTBEAT__INIT;
    Peer__Head head = PEER__HEAD__INIT, *next;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    head.kind_case = PEER__HEAD__KIND_HEARTBEAT;
    head.heartbeat = &beat;
    router_send(f.router, minus, &head);
    router_relay(f.router, minus, frame_of(&f, &head));
    link_closed(f.up[minus]->link, "reset");
    f.up[minus]->link = NULL;
    router_send(f.router, minus, &head);
    router_relay(f.router, minus, frame_of(&f, &head));
    fixture_link_up(&f, minus);
    assert_null(next = fixture_next(f.up[minus], NULL, 0, NULL));
    router_send(f.router, minus, &head);
    next = fixture_next(f.up[minus], NULL, 0, NULL);
    assert_non_null(next);
    peer__head__free_unpacked(next, NULL);
    fixture_close(&f);
}

/* The node there begins by `go`: on a slow link it must not wait for the data behind it. */
static void go_is_a_packet_of_its_own(void **state)
{
    struct router_fixture f;
    Peer__Heartbeat beat = PEER__HEARTBEAT__INIT;
    Peer__Go go = PEER__GO__INIT;
    Peer__Head head = PEER__HEAD__INIT;
    struct outgoing *frame;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    head.kind_case = PEER__HEAD__KIND_GO;
    head.go = &go;
    router_send(f.router, minus, &head);
    assert_non_null(frame = link_next(f.up[minus]->link));
    assert_true(frame->in_passing);
    outgoing_free(router_outgoing(f.router), frame);
    head.kind_case = PEER__HEAD__KIND_HEARTBEAT;
    head.heartbeat = &beat;
    router_send(f.router, minus, &head);
    assert_non_null(frame = link_next(f.up[minus]->link));
    assert_false(frame->in_passing);
    outgoing_free(router_outgoing(f.router), frame);
    fixture_close(&f);
}

static void say_link_state(struct fixture_connection *c, uint32_t rank, uint32_t hops, uint32_t up)
{
    Peer__LinkState__Entry entry = PEER__LINK_STATE__ENTRY__INIT, *entries = &entry;
    Peer__LinkState link_state = PEER__LINK_STATE__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    entry.rank = rank;
    entry.hops = hops;
    entry.up = up;
    entry.boot = 9;
    link_state.n_entry = 1;
    link_state.entry = &entries;
    head.kind_case = PEER__HEAD__KIND_LINK_STATE;
    head.link_state = &link_state;
    fixture_say(c, &head, NULL, 0);
}

static unsigned entries_sent(struct fixture_connection *c, uint32_t rank)
{
    unsigned found = 0;
    Peer__Head *head;

    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        for (size_t i = 0;
             head->kind_case == PEER__HEAD__KIND_LINK_STATE && i < head->link_state->n_entry; i++)
            found += head->link_state->entry[i]->rank == rank;
        peer__head__free_unpacked(head, NULL);
    }
    return found;
}

static void news_are_passed_on_once(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    for (unsigned port = 0; port < 4; port++)
        fixture_link_up(&f, port);
    pass(&f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 4; port++)
        (void)entries_sent(f.up[port], 12);
    for (int twice = 0; twice < 2; twice++) {
        say_link_state(f.up[2], 12, 4, 3);
        pass(&f, 50 * MILLISECONDS);
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(entries_sent(f.up[port], 12), twice == 0);
    }
    assert_int_equal(router_topology(f.router)->entry[12].up, 3);
    assert_int_equal(router_topology(f.router)->entry[12].hops, 5);
    fixture_close(&f);
}

/* All exchanges look at each of them: they are told together, if there are many at once. */
static void many_news_at_once_are_told_together(void **state)
{
    enum { FRAMES = 500 };
    static uint8_t bytes[FRAMES * 64];
    struct router_fixture f;
    size_t length = 0;

    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 2);
    for (uint32_t i = 1; i <= FRAMES; i++) {
        Peer__LinkState__Entry entry = PEER__LINK_STATE__ENTRY__INIT, *entries = &entry;
        Peer__LinkState link_state = PEER__LINK_STATE__INIT;
        Peer__Head head = PEER__HEAD__INIT;
        entry.rank = 12;
        entry.hops = 4;
        entry.version = i;
        entry.up = i % 16;
        link_state.n_entry = 1;
        link_state.entry = &entries;
        head.kind_case = PEER__HEAD__KIND_LINK_STATE;
        head.link_state = &link_state;
        size_t size = peer__head__get_packed_size(&head);
        assert_true(length + FRAME_PREFIX_SIZE + size + HEAD_CHECK_SIZE <= sizeof bytes);
        (void)peer__head__pack(&head, bytes + length + FRAME_PREFIX_SIZE);
        length += head_check_write(bytes + length, (uint32_t)size, 0);
    }
    unsigned changes = f.topology_changes;
    fixture_feed(f.up[2], bytes, length);
    assert_in_range(f.topology_changes, changes + 2, changes + 20);
    assert_int_equal(router_topology(f.router)->entry[12].up, FRAMES % 16);
    fixture_close(&f);
}

static void a_new_neighbour_is_told_everything(void **state)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE];
    Peer__Hello hello;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    say_link_state(f.up[0], 12, 4, 3);
    pass(&f, 50 * MILLISECONDS);
    struct fixture_connection *c = fixture_connect(&f, 1, false);
    fixture_hello(&f, 1, &hello, dims);
    fixture_say_hello(c, &hello);
    fixture_pass_probe(c);
    pass(&f, 50 * MILLISECONDS);
    assert_int_equal(entries_sent(c, 12), 1);
    /* And again after a while, as is every node. */
    for (int second = 0; second < 40; second++) {
        say_heartbeat(c);
        say_heartbeat(f.up[0]);
        pass(&f, SECONDS);
    }
    assert_int_equal(entries_sent(c, 12), 1);
    fixture_close(&f);
}

static void a_lost_link_takes_its_claims_with_it(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    fixture_link_up(&f, 2);
    say_link_state(f.up[0], 12, 4, 3);
    say_link_state(f.up[2], 12, 6, 15);
    assert_int_equal(router_topology(f.router)->entry[12].up, 3);
    link_closed(f.up[0]->link, "reset");
    f.up[0]->link = NULL;
    assert_int_equal(router_topology(f.router)->entry[12].up, 15);
    assert_int_equal(router_topology(f.router)->entry[12].hops, 7);
    fixture_close(&f);
}

static void link_states_that_cannot_be_cost_the_connection(void **state)
{
    struct router_fixture f;
    (void)state;
    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    say_link_state(f.up[0], 16, 1, 3); /* no such node */
    assert_null(f.up[0]->link);
    fixture_link_up(&f, 0);
    say_link_state(f.up[0], 1, 1, 3); /* node 9 is two hops away from node 1 */
    assert_null(f.up[0]->link);
    assert_non_null(strstr(f.up[0]->last, "node 9 is 2 hops away"));
    fixture_link_up(&f, 0);
    say_link_state(f.up[0], 9, 1, 3); /* and none from itself */
    assert_null(f.up[0]->link);
    fixture_close(&f);
}

/* --- a neighbour that asks and does not read the answers --- */

struct answering {
    struct router_fixture f;
    unsigned asked, answer_at;
};

static int answer(void *context, unsigned port, const Peer__Head *head, const struct extents *body,
                  uint32_t body_length, struct error *e)
{
    struct answering *a = context;
    Peer__Outcome outcome = PEER__OUTCOME__INIT;
    Peer__Head reply = PEER__HEAD__INIT;

    (void)port, (void)head, (void)body, (void)body_length, (void)e;
    outcome.id = (char[]){"1-00000001-1"};
    reply.kind_case = PEER__HEAD__KIND_OUTCOME;
    reply.outcome = &outcome;
    router_send(a->f.router, a->answer_at, &reply);
    a->asked++;
    return 0;
}

static struct outgoing *nothing(void *context, unsigned port)
{
    (void)context, (void)port;
    return NULL;
}

static void not_interested(void *context)
{
    (void)context;
}

static void open_answering(struct answering *a)
{
    const struct router_handler handler = {a, answer, nothing, not_interested};

    fixture_open(&a->f, "4x4", 5, &handler);
    a->asked = 0;
    for (unsigned port = 0; port < 2; port++)
        fixture_link_up(&a->f, port);
    pass(&a->f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 2; port++)
        (void)entries_sent(a->f.up[port], 12);
}

/* Asks at port 0 until no more is read there. */
static void ask(struct answering *a)
{
    Peer__OutcomeQuery query = PEER__OUTCOME_QUERY__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    query.id = (char[]){"1-00000001-1"};
    head.kind_case = PEER__HEAD__KIND_OUTCOME_QUERY;
    head.outcome_query = &query;
    while (!link_held(a->f.up[0]->link)) {
        assert_true(a->asked < ROUTER_QUEUE_MOST / 32);
        fixture_say(a->f.up[0], &head, NULL, 0);
    }
}

static void who_does_not_read_is_not_read_and_then_closed(void **state)
{
    struct answering a = {.answer_at = 0};
    (void)state;
    open_answering(&a);
    ask(&a);
    for (int second = 0; second < 4; second++) {
        say_heartbeat(a.f.up[0]);
        say_heartbeat(a.f.up[1]);
        pass(&a.f, SECONDS);
    }
    assert_non_null(a.f.up[0]->link);
    say_heartbeat(a.f.up[1]);
    pass(&a.f, 2 * SECONDS);
    assert_null(a.f.up[0]->link);
    assert_non_null(strstr(a.f.up[0]->last, "node 9 has read nothing for 5 s"));
    assert_non_null(a.f.up[1]->link);
    fixture_close(&a.f);
}

static void who_reads_slowly_is_waited_for(void **state)
{
    struct answering a = {.answer_at = 0};
    unsigned wakes, taken = 0;
    (void)state;
    open_answering(&a);
    ask(&a);
    wakes = a.f.up[0]->wakes;
    /* One answer every four seconds, for a while; nothing else is heard of it. */
    for (int i = 0; i < 20; i++) {
        peer__head__free_unpacked(fixture_next(a.f.up[0], NULL, 0, NULL), NULL);
        for (int second = 0; second < 4; second++) {
            say_heartbeat(a.f.up[1]);
            pass(&a.f, SECONDS);
        }
        assert_non_null(a.f.up[0]->link);
        assert_true(link_held(a.f.up[0]->link));
    }
    for (Peer__Head *head; link_held(a.f.up[0]->link); taken++) {
        assert_non_null(head = fixture_next(a.f.up[0], NULL, 0, NULL));
        peer__head__free_unpacked(head, NULL);
    }
    assert_in_range(taken, a.asked / 4, a.asked);
    assert_true(a.f.up[0]->wakes > wakes);
    pass(&a.f, ROUTER_STALL - 1); /* it is given its time to be heard again */
    assert_non_null(a.f.up[0]->link);
    fixture_close(&a.f);
}

/* The answers go on to another neighbour, which does not take them: that one is to blame. */
static void who_is_held_for_another_is_not_blamed(void **state)
{
    struct answering a = {.answer_at = 1};
    (void)state;
    open_answering(&a);
    ask(&a);
    assert_false(link_held(a.f.up[1]->link));
    for (int second = 0; second < 4; second++) {
        say_heartbeat(a.f.up[1]);
        pass(&a.f, SECONDS);
    }
    assert_non_null(a.f.up[1]->link);
    pass(&a.f, 2 * SECONDS);
    assert_null(a.f.up[1]->link);
    assert_non_null(a.f.up[0]->link);
    assert_false(link_held(a.f.up[0]->link));
    fixture_close(&a.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plus_side_dials_and_says_hello_first),
        cmocka_unit_test(a_valid_hello_brings_the_link_up),
        cmocka_unit_test(who_is_not_the_neighbour_is_told_why),
        cmocka_unit_test(strangers_say_hello_first_and_briefly),
        cmocka_unit_test(hello_is_said_once),
        cmocka_unit_test(strangers_do_not_touch_a_link_that_is_up),
        cmocka_unit_test(a_new_connection_of_the_neighbour_replaces_the_old_one),
        cmocka_unit_test(a_silent_link_is_given_up),
        cmocka_unit_test(a_neighbour_that_does_not_run_is_waited_for),
        cmocka_unit_test(a_link_that_loses_large_packets_is_given_up),
        cmocka_unit_test(a_link_is_up_when_full_frames_have_passed_both_ways),
        cmocka_unit_test(a_cable_that_drops_the_probe_is_named),
        cmocka_unit_test(who_probes_is_not_a_stranger),
        cmocka_unit_test(losses_that_are_noticed_late_count_as_well),
        cmocka_unit_test(who_beats_slowly_is_given_more_time),
        cmocka_unit_test(a_link_without_whole_frames_is_given_up),
        cmocka_unit_test(we_are_not_silent_ourselves),
        cmocka_unit_test(time_that_we_slept_is_not_held_against_the_peer),
        cmocka_unit_test(who_never_says_hello_is_closed),
        cmocka_unit_test(dialling_goes_on_for_ever_and_slows_down),
        cmocka_unit_test(a_link_without_a_carrier_is_given_up),
        cmocka_unit_test(a_carrier_that_is_back_is_dialled_at_once),
        cmocka_unit_test(a_connection_that_has_been_replaced_is_not_dialled_again),
        cmocka_unit_test(a_link_that_flaps_has_to_be_quiet),
        cmocka_unit_test(what_counts_as_flapping),
        cmocka_unit_test(what_was_to_be_sent_on_a_lost_link_is_dropped),
        cmocka_unit_test(go_is_a_packet_of_its_own),
        cmocka_unit_test(news_are_passed_on_once),
        cmocka_unit_test(many_news_at_once_are_told_together),
        cmocka_unit_test(a_new_neighbour_is_told_everything),
        cmocka_unit_test(a_lost_link_takes_its_claims_with_it),
        cmocka_unit_test(who_does_not_read_is_not_read_and_then_closed),
        cmocka_unit_test(who_reads_slowly_is_waited_for),
        cmocka_unit_test(who_is_held_for_another_is_not_blamed),
        cmocka_unit_test(link_states_that_cannot_be_cost_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
