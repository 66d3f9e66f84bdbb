/* Ports: dialling, carriers, links that flap. */
#include "daemon/torusd/router/flood.h"
#include "daemon/torusd/router/outgoing.h"
#include "proto/frame.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"

static const unsigned plus = 0, minus = 1;

ROUTER_TEST(dialling_goes_on_for_ever_and_slows_down)
{
    uint64_t began, longest = 0;

    router_start(f->router);
    for (int i = 0; i < 30; i++) {
        unsigned dials = f->dials[plus];
        began = f->now;
        router_dial_failed(f->router, plus, "connection refused");
        assert_int_equal(fixture_state_of(f, plus), PORT_WAITING);
        while (f->dials[plus] == dials)
            fixture_pass(f, 1 * MILLISECONDS);
        assert_int_equal(f->dials[plus], dials + 1);
        longest = f->now - began > longest ? f->now - began : longest;
        if (i == 0)
            assert_in_range(f->now - began, 20 * MILLISECONDS, 60 * MILLISECONDS);
        assert_true(f->now - began <= 3 * SECONDS);
    }
    assert_true(longest > 1 * SECONDS);
    /* A link that comes up and goes down is dialled quickly again. */
    fixture_link_up(f, plus);
    unsigned dials = f->dials[plus];
    fixture_lose(f, plus);
    fixture_pass(f, 60 * MILLISECONDS);
    assert_int_equal(f->dials[plus], dials + 1);
}

ROUTER_TEST(a_link_without_a_carrier_is_given_up)
{
    fixture_link_up(f, minus);
    fixture_link_up(f, plus);
    struct fixture_connection *half = fixture_connect(f, minus, false);
    router_carrier(f->router, minus, "no carrier on eth1");
    assert_null(f->up[minus]->link);
    assert_null(half->link);
    assert_string_equal(f->up[minus]->last, ""); /* nobody would hear it */
    assert_non_null(f->up[plus]->link);
    assert_int_equal(router_topology(f->router)->entry[5].up, 1u << plus);
    fixture_check_reason(f, minus, "no carrier on eth1");
    router_carrier(f->router, minus, "no carrier on eth1, which is set down");
    fixture_check_reason(f, minus, "set down");
    /* A connection that comes nevertheless is accepted. */
    fixture_link_up(f, minus);
    assert_int_equal(fixture_state_of(f, minus), PORT_UP);
    router_carrier(f->router, minus, NULL);
    assert_int_equal(fixture_state_of(f, minus), PORT_UP);
}

/* Losses count for an hour, even if the link has been down and come up again since. */
ROUTER_TEST(losses_of_the_last_hour)
{
    struct port_info info;

    router_port_info(f->router, minus, &info);
    assert_int_equal(info.hour_ns, 0);
    fixture_link_up(f, minus);
    fixture_stay_up(f, minus, 60 * SECONDS);
    f->up[minus]->stat.retransmits = 500;
    fixture_stay_up(f, minus, 60 * SECONDS);
    router_port_info(f->router, minus, &info);
    assert_in_range(info.hour_ns, 120 * SECONDS, 125 * SECONDS);
    assert_int_equal(info.hour_retransmits, 500);
    assert_int_equal(info.hour_connects, 1);
    assert_true(info.hour_tx_bytes > 0);
    fixture_lose(f, minus);
    fixture_link_up(f, minus);
    router_port_info(f->router, minus, &info);
    assert_int_equal(info.hour_retransmits, 500);
    assert_int_equal(info.hour_connects, 2);
    fixture_stay_up(f, minus, 3700 * SECONDS);
    router_port_info(f->router, minus, &info);
    assert_in_range(info.hour_ns, 3300 * SECONDS, 3600 * SECONDS);
    assert_int_equal(info.hour_retransmits, 0);
    assert_int_equal(info.hour_connects, 0);
    assert_int_equal(info.totals.retransmits, 500);
}

/* The port dials at once, not after the pause that has grown meanwhile, and whether or not another dial is running. */
ROUTER_TEST(a_carrier_that_is_back_is_dialled_at_once)
{
    router_start(f->router);
    fixture_link_up(f, plus);
    for (int waiting = 0; waiting < 2; waiting++) {
        router_carrier(f->router, plus, "no carrier on eth0");
        for (unsigned dials = f->dials[plus], i = 0; i < 10; i++) {
            while (f->dials[plus] == dials)
                fixture_pass(f, 1 * MILLISECONDS);
            dials = f->dials[plus];
            if (i < 9 || waiting != 0)
                router_dial_failed(f->router, plus, "timed out");
        }
        fixture_check_reason(f, plus, "no carrier on eth0"); /* which is why dialling fails */
        unsigned dials = f->dials[plus];
        router_carrier(f->router, plus, NULL);
        assert_int_equal(f->dials[plus], dials + 1);
        fixture_check_reason(f, plus, "the carrier is back");
        router_carrier(f->router, plus, NULL);
        assert_int_equal(f->dials[plus], dials + 1);
        fixture_link_up(f, plus);
    }
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
        assert_contains(c->last, "node 0 does not use this link");
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
        if (i % 2 == 0)
            fall_silent(&f, plus, true);
        else
            fixture_lose(&f, plus);
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

/* Link states that are sent to neighbours, and received from them. */

static void say_link_state(struct fixture_connection *c, uint32_t rank, uint32_t hops, uint32_t up)
{
    fixture_say_entry(
        c, &(struct peer_link_state_entry){.rank = rank, .hops = hops, .up = up, .boot = 9});
}

ROUTER_TEST(news_are_passed_on_once)
{
    for (unsigned port = 0; port < 4; port++)
        fixture_link_up(f, port);
    fixture_pass(f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 4; port++)
        (void)fixture_entries_sent(f->up[port], 12, NULL);
    for (int twice = 0; twice < 2; twice++) {
        say_link_state(f->up[2], 12, 4, 3);
        fixture_pass(f, 50 * MILLISECONDS);
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(fixture_entries_sent(f->up[port], 12, NULL), twice == 0);
    }
    assert_int_equal(router_topology(f->router)->entry[12].up, 3);
    assert_int_equal(router_topology(f->router)->entry[12].hops, 5);
}

/* All exchanges react to each link state, so link states that arrive together are reported together. */
ROUTER_TEST(many_news_at_once_are_told_together)
{
    enum { FRAMES = 500 };
    static uint8_t bytes[FRAMES * 64];
    size_t length = 0;

    fixture_link_up(f, 2);
    for (uint32_t i = 1; i <= FRAMES; i++) {
        const struct peer_link_state_entry entry = {
            .rank = 12, .hops = 4, .version = i, .up = i % 16};
        const struct peer_message head = {.kind = PEER_LINK_STATE, .link_state = {1, &entry}};
        size_t room = sizeof bytes - length - FRAME_PREFIX_SIZE - HEAD_CHECK_SIZE;
        size_t size = message_write(&head, bytes + length + FRAME_PREFIX_SIZE, room);
        assert_true(size > 0);
        length += head_check_write(bytes + length, (uint32_t)size, 0);
    }
    unsigned changes = f->topology_changes;
    fixture_feed(f->up[2], bytes, length);
    assert_in_range(f->topology_changes, changes + 2, changes + 20);
    assert_int_equal(router_topology(f->router)->entry[12].up, FRAMES % 16);
}

ROUTER_TEST(a_new_neighbour_is_told_everything)
{
    fixture_link_up(f, 0);
    say_link_state(f->up[0], 12, 4, 3);
    fixture_pass(f, 50 * MILLISECONDS);
    struct fixture_connection *c = fixture_shake(f, 1, 0);
    fixture_pass_probe(c);
    fixture_pass(f, 50 * MILLISECONDS);
    assert_int_equal(fixture_entries_sent(c, 12, NULL), 1);
    /* Every link state is sent again after a while. */
    for (int second = 0; second < 40; second++) {
        fixture_say_heartbeat(c);
        fixture_say_heartbeat(f->up[0]);
        fixture_pass(f, SECONDS);
    }
    assert_int_equal(fixture_entries_sent(c, 12, NULL), 1);
}

ROUTER_TEST(a_lost_link_takes_its_claims_with_it)
{
    fixture_link_up(f, 0);
    fixture_link_up(f, 2);
    say_link_state(f->up[0], 12, 4, 3);
    say_link_state(f->up[2], 12, 6, 15);
    assert_int_equal(router_topology(f->router)->entry[12].up, 3);
    fixture_lose(f, 0);
    assert_int_equal(router_topology(f->router)->entry[12].up, 15);
    assert_int_equal(router_topology(f->router)->entry[12].hops, 7);
}

ROUTER_TEST(link_states_that_cannot_be_cost_the_connection)
{
    fixture_link_up(f, 0);
    say_link_state(f->up[0], 16, 1, 3); /* no such node */
    assert_null(f->up[0]->link);
    fixture_link_up(f, 0);
    say_link_state(f->up[0], 1, 1, 3); /* node 9 is two hops away from node 1 */
    assert_null(f->up[0]->link);
    assert_contains(f->up[0]->last, "node 9 is 2 hops away");
    fixture_link_up(f, 0);
    say_link_state(f->up[0], 9, 1, 3); /* and none from itself */
    assert_null(f->up[0]->link);
}

static void say_confirmed(struct fixture_connection *c, uint32_t version, uint64_t confirmed)
{
    fixture_say_entry(c, &(struct peer_link_state_entry){.rank = 12,
                                                         .hops = 4,
                                                         .version = version,
                                                         .up = 3,
                                                         .boot = 9,
                                                         .minor = PROTOCOL_MINOR,
                                                         .confirmed = confirmed});
}

ROUTER_TEST(confirmations_are_passed_on_once)
{
    uint64_t confirmed = 0;

    for (unsigned port = 0; port < 4; port++)
        fixture_link_up(f, port);
    say_confirmed(f->up[2], 1, 0);
    fixture_pass(f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 4; port++)
        (void)fixture_entries_sent(f->up[port], 12, &confirmed);
    assert_int_equal(f->confirmations, 0);
    const unsigned changes = f->topology_changes;
    for (int twice = 0; twice < 2; twice++) {
        say_confirmed(f->up[2], 2, 77);
        fixture_pass(f, 50 * MILLISECONDS);
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(fixture_entries_sent(f->up[port], 12, &confirmed), twice == 0);
        assert_int_equal(confirmed, 77);
    }
    assert_int_equal(f->confirmations, 1);
    assert_int_equal(f->topology_changes, changes); /* exchanges need not look at it */
    assert_int_equal(router_topology(f->router)->entry[12].confirmed, 77);
}

/* What a node confirms within a moment uses one version, and is sent once. */
ROUTER_TEST(a_node_states_what_it_confirms)
{
    uint64_t confirmed = 0;

    fixture_link_up(f, 0);
    fixture_pass(f, 50 * MILLISECONDS);
    (void)fixture_entries_sent(f->up[0], 5, &confirmed);
    const uint32_t version = router_topology(f->router)->entry[5].version;
    for (uint64_t digest = 1; digest <= 100; digest++)
        router_confirm(f->router, digest);
    router_confirm(f->router, 100);
    fixture_pass(f, 50 * MILLISECONDS);
    assert_int_equal(fixture_entries_sent(f->up[0], 5, &confirmed), 1);
    assert_int_equal(confirmed, 100);
    assert_int_equal(router_topology(f->router)->entry[5].version, version + 1);
}

ROUTER_TEST(an_older_neighbour_hears_of_no_confirmation)
{
    uint64_t confirmed = 1;

    router_set_minor(f->router, CONFIRM_MINOR);
    f->minor = CONFIRM_MINOR;
    fixture_link_up(f, 0);
    f->minor = CONFIRM_MINOR - 1;
    fixture_link_up(f, 1);
    router_confirm(f->router, 99);
    fixture_pass(f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 2; port++) {
        assert_true(fixture_entries_sent(f->up[port], 5, &confirmed) > 0);
        assert_int_equal(confirmed, 0);
    }
}

static uint32_t own_forwards(const struct router_fixture *f)
{
    return router_topology(f->router)->entry[5].forwards;
}

/* That a node forwards is valid for a limited time, and for less if the process that said so is gone. */
ROUTER_TEST(a_node_forwards_as_long_as_that_is_said)
{
    fixture_link_up(f, 0);
    fixture_stay_up(f, 0,
                    10 * FORWARD_LEASE); /* which must not count as time that this node slept */
    assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS_NOT);
    router_forward(f->router, true);
    fixture_stay_up(f, 0, FORWARD_LEASE + 50 * MILLISECONDS);
    assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS_NOT);
    for (int i = 0; i < 3; i++) {
        router_forward(f->router, true);
        fixture_stay_up(f, 0, FORWARD_LEASE / 2);
        assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS);
    }
    fixture_stay_up(f, 0, FORWARD_LEASE / 2);
    fixture_pass(f, 50 * MILLISECONDS);
    assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS_NOT);
    router_forward(f->router, true);
    fixture_pass(f, 50 * MILLISECONDS);
    router_forward_lost(f->router);
    fixture_pass(f, FORWARD_GRACE / 2);
    assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS);
    fixture_pass(f, FORWARD_GRACE);
    assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS_NOT);
    router_forward(f->router, true);
    fixture_pass(f, 50 * MILLISECONDS);
    router_forward_lost(f->router);
    router_forward(f->router, true); /* another process has taken over */
    fixture_say_heartbeat(f->up[0]);
    fixture_pass(f, 2 * FORWARD_GRACE);
    assert_int_equal(own_forwards(f), TOPOLOGY_FORWARDS);
}

/* Changes within a moment are sent together at its end. */
ROUTER_TEST(many_changes_are_gathered)
{
    uint64_t confirmed = 0;

    fixture_link_up(f, 0);
    fixture_pass(f, 50 * MILLISECONDS);
    (void)fixture_entries_sent(f->up[0], 5, &confirmed);
    for (uint64_t digest = 1; digest <= 100; digest++) {
        router_confirm(f->router, digest);
        router_tick(f->router);
    }
    assert_int_equal(fixture_entries_sent(f->up[0], 5, &confirmed), 0);
    fixture_pass(f, 2 * MILLISECONDS);
    assert_int_equal(fixture_entries_sent(f->up[0], 5, &confirmed), 1);
    assert_int_equal(confirmed, 100);
}

/* Queues of frames to send, and neighbours that ask and do not read. */

static struct outgoing *frame_of(struct router_fixture *f, const struct peer_message *message)
{
    struct outgoing *frame = outgoing_new(router_outgoing(f->router));

    assert_non_null(frame);
    assert_int_equal(outgoing_set_message(frame, message), 0);
    return frame;
}

ROUTER_TEST(frames_for_a_lost_link_are_dropped)
{
    const struct peer_message beat = {.kind = PEER_HEARTBEAT};
    struct peer_message *next;

    fixture_link_up(f, minus);
    router_send(f->router, minus, &beat);
    router_relay(f->router, minus, frame_of(f, &beat));
    fixture_lose(f, minus);
    router_send(f->router, minus, &beat);
    router_relay(f->router, minus, frame_of(f, &beat));
    fixture_link_up(f, minus);
    assert_null(next = fixture_next(f->up[minus], NULL, 0, NULL));
    router_send(f->router, minus, &beat);
    next = fixture_next(f->up[minus], NULL, 0, NULL);
    assert_non_null(next);
    message_forget(next);
}

/* The node there begins by `go`: on a slow link it must not wait for the data behind it. */
ROUTER_TEST(go_is_a_packet_of_its_own)
{
    const struct peer_message beat = {.kind = PEER_HEARTBEAT}, go = {.kind = PEER_GO};
    struct outgoing *frame;

    fixture_link_up(f, minus);
    router_send(f->router, minus, &go);
    assert_non_null(frame = link_next(f->up[minus]->link));
    assert_true(frame->immediate);
    outgoing_free(router_outgoing(f->router), frame);
    router_send(f->router, minus, &beat);
    assert_non_null(frame = link_next(f->up[minus]->link));
    assert_false(frame->immediate);
    outgoing_free(router_outgoing(f->router), frame);
}

struct answering {
    struct router_fixture f;
    unsigned asked, answer_at;
};

static int answer(void *context, unsigned port, const struct peer_message *head,
                  const struct extents *body, uint32_t body_length, struct error *e)
{
    struct answering *a = context;
    const struct peer_message reply = {.kind = PEER_OUTCOME, .outcome = {.id = "1-00000001-1"}};

    router_send(a->f.router, a->answer_at, &reply);
    a->asked++;
    return 0;
}

static struct outgoing *nothing(void *context, unsigned port)
{
    return NULL;
}

static void not_interested(void *context)
{
}

static void open_answering(struct answering *a)
{
    const struct router_handler handler = {a, answer, nothing, NULL, NULL, not_interested, NULL};

    fixture_open(&a->f, "4x4", 5, &handler);
    a->asked = 0;
    for (unsigned port = 0; port < 2; port++)
        fixture_link_up(&a->f, port);
    fixture_pass(&a->f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 2; port++)
        (void)fixture_entries_sent(a->f.up[port], 12, NULL);
}

/* Asks at port 0 until the router stops reading there. */
static void ask(struct answering *a)
{
    struct peer_outcome_query query = {0};

    query.id = (char[]){"1-00000001-1"};
    const struct peer_message head = {.kind = PEER_OUTCOME_QUERY, .outcome_query = query};
    while (!link_held(a->f.up[0]->link)) {
        assert_true(a->asked < ROUTER_QUEUE_MOST / 32);
        fixture_say(a->f.up[0], &head, NULL, 0);
    }
}

TEST(a_neighbour_that_does_not_read_is_not_read_and_then_closed)
{
    struct answering a = {.answer_at = 0};

    open_answering(&a);
    ask(&a);
    for (int second = 0; second < 4; second++) {
        fixture_say_heartbeat(a.f.up[0]);
        fixture_say_heartbeat(a.f.up[1]);
        fixture_pass(&a.f, SECONDS);
    }
    assert_non_null(a.f.up[0]->link);
    fixture_say_heartbeat(a.f.up[1]);
    fixture_pass(&a.f, 2 * SECONDS);
    assert_null(a.f.up[0]->link);
    assert_contains(a.f.up[0]->last, "node 9 has read nothing for 5 s");
    assert_non_null(a.f.up[1]->link);
    fixture_close(&a.f);
}

TEST(a_slow_reader_is_waited_for)
{
    struct answering a = {.answer_at = 0};
    unsigned wakes, taken = 0;

    open_answering(&a);
    ask(&a);
    wakes = a.f.up[0]->wakes;
    /* One answer every four seconds for a while; no other frames arrive. */
    for (int i = 0; i < 20; i++) {
        message_forget(fixture_next(a.f.up[0], NULL, 0, NULL));
        for (int second = 0; second < 4; second++) {
            fixture_say_heartbeat(a.f.up[1]);
            fixture_pass(&a.f, SECONDS);
        }
        assert_non_null(a.f.up[0]->link);
        assert_true(link_held(a.f.up[0]->link));
    }
    for (struct peer_message *head; link_held(a.f.up[0]->link); taken++) {
        assert_non_null(head = fixture_next(a.f.up[0], NULL, 0, NULL));
        message_forget(head);
    }
    assert_in_range(taken, a.asked / 4, a.asked);
    assert_true(a.f.up[0]->wakes > wakes);
    fixture_pass(&a.f, ROUTER_STALL - 1); /* it gets the full time to be heard again */
    assert_non_null(a.f.up[0]->link);
    fixture_close(&a.f);
}

/* The answers are relayed to another neighbour, which does not read: that neighbour is to blame. */
TEST(a_neighbour_held_up_by_another_is_not_blamed)
{
    struct answering a = {.answer_at = 1};

    open_answering(&a);
    ask(&a);
    assert_false(link_held(a.f.up[1]->link));
    for (int second = 0; second < 4; second++) {
        fixture_say_heartbeat(a.f.up[1]);
        fixture_pass(&a.f, SECONDS);
    }
    assert_non_null(a.f.up[1]->link);
    fixture_pass(&a.f, 2 * SECONDS);
    assert_null(a.f.up[1]->link);
    assert_non_null(a.f.up[0]->link);
    assert_false(link_held(a.f.up[0]->link));
    fixture_close(&a.f);
}
