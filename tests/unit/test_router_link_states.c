/* Link states that are sent to neighbours, and received from them. */
#include "daemon/torusd/router/flood.h"
#include "daemon/torusd/router/outgoing.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

static void say_link_state(struct fixture_connection *c, uint32_t rank, uint32_t hops, uint32_t up)
{
    struct peer_link_state_entry entry = {0};
    struct peer_link_state link_state = {0};

    entry.rank = rank;
    entry.hops = hops;
    entry.up = up;
    entry.boot = 9;
    link_state.n_entry = 1;
    link_state.entry = &entry;
    const struct peer_message head = {.kind = PEER_LINK_STATE, .link_state = link_state};
    fixture_say(c, &head, NULL, 0);
}

TEST(news_are_passed_on_once)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    for (unsigned port = 0; port < 4; port++)
        fixture_link_up(&f, port);
    fixture_pass(&f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 4; port++)
        (void)fixture_entries_sent(f.up[port], 12);
    for (int twice = 0; twice < 2; twice++) {
        say_link_state(f.up[2], 12, 4, 3);
        fixture_pass(&f, 50 * MILLISECONDS);
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(fixture_entries_sent(f.up[port], 12), twice == 0);
    }
    assert_int_equal(router_topology(f.router)->entry[12].up, 3);
    assert_int_equal(router_topology(f.router)->entry[12].hops, 5);
    fixture_close(&f);
}

/* All exchanges react to each link state, so many at once are reported together. */
TEST(many_news_at_once_are_told_together)
{
    enum { FRAMES = 500 };
    static uint8_t bytes[FRAMES * 64];
    struct router_fixture f;
    size_t length = 0;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 2);
    for (uint32_t i = 1; i <= FRAMES; i++) {
        struct peer_link_state_entry entry = {0};
        struct peer_link_state link_state = {0};
        entry.rank = 12;
        entry.hops = 4;
        entry.version = i;
        entry.up = i % 16;
        link_state.n_entry = 1;
        link_state.entry = &entry;
        const struct peer_message head = {.kind = PEER_LINK_STATE, .link_state = link_state};
        size_t room = sizeof bytes - length - FRAME_PREFIX_SIZE - HEAD_CHECK_SIZE;
        size_t size = message_write(&head, bytes + length + FRAME_PREFIX_SIZE, room);
        assert_true(size > 0);
        length += head_check_write(bytes + length, (uint32_t)size, 0);
    }
    unsigned changes = f.topology_changes;
    fixture_feed(f.up[2], bytes, length);
    assert_in_range(f.topology_changes, changes + 2, changes + 20);
    assert_int_equal(router_topology(f.router)->entry[12].up, FRAMES % 16);
    fixture_close(&f);
}

TEST(a_new_neighbour_is_told_everything)
{
    struct router_fixture f;
    char dims[TORUS_TEXT_SIZE];
    struct peer_hello hello;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    say_link_state(f.up[0], 12, 4, 3);
    fixture_pass(&f, 50 * MILLISECONDS);
    struct fixture_connection *c = fixture_connect(&f, 1, false);
    fixture_hello(&f, 1, &hello, dims);
    fixture_say_hello(c, &hello);
    fixture_pass_probe(c);
    fixture_pass(&f, 50 * MILLISECONDS);
    assert_int_equal(fixture_entries_sent(c, 12), 1);
    /* Every link state is sent again after a while. */
    for (int second = 0; second < 40; second++) {
        fixture_say_heartbeat(c);
        fixture_say_heartbeat(f.up[0]);
        fixture_pass(&f, SECONDS);
    }
    assert_int_equal(fixture_entries_sent(c, 12), 1);
    fixture_close(&f);
}

TEST(a_lost_link_takes_its_claims_with_it)
{
    struct router_fixture f;

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

TEST(link_states_that_cannot_be_cost_the_connection)
{
    struct router_fixture f;

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

/* Returns how often a node's state was sent there, and what it had confirmed the last time. */
static unsigned sent_of(struct fixture_connection *c, uint32_t rank, uint64_t *confirmed)
{
    struct peer_message *head;
    unsigned found = 0;

    while ((head = fixture_next(c, NULL, 0, NULL)) != NULL) {
        for (size_t i = 0; head->kind == PEER_LINK_STATE && i < head->link_state.n_entry; i++)
            if (head->link_state.entry[i].rank == rank) {
                found++;
                *confirmed = head->link_state.entry[i].confirmed;
            }
        message_forget(head);
    }
    return found;
}

static void say_confirmed(struct fixture_connection *c, uint32_t version, uint64_t confirmed)
{
    const struct peer_link_state_entry entry = {.rank = 12,
                                                .hops = 4,
                                                .version = version,
                                                .up = 3,
                                                .boot = 9,
                                                .minor = PROTOCOL_MINOR,
                                                .confirmed = confirmed};

    fixture_say(c, &(struct peer_message){.kind = PEER_LINK_STATE, .link_state = {1, &entry}}, NULL,
                0);
}

TEST(confirmations_are_passed_on_once)
{
    struct router_fixture f;
    uint64_t confirmed = 0;

    fixture_open(&f, "4x4", 5, NULL);
    for (unsigned port = 0; port < 4; port++)
        fixture_link_up(&f, port);
    say_confirmed(f.up[2], 1, 0);
    fixture_pass(&f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 4; port++)
        (void)sent_of(f.up[port], 12, &confirmed);
    assert_int_equal(f.confirmations, 0);
    const unsigned changes = f.topology_changes;
    for (int twice = 0; twice < 2; twice++) {
        say_confirmed(f.up[2], 2, 77);
        fixture_pass(&f, 50 * MILLISECONDS);
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(sent_of(f.up[port], 12, &confirmed), twice == 0);
        assert_int_equal(confirmed, 77);
    }
    assert_int_equal(f.confirmations, 1);
    assert_int_equal(f.topology_changes, changes); /* exchanges need not look at it */
    assert_int_equal(router_topology(f.router)->entry[12].confirmed, 77);
    fixture_close(&f);
}

/* What a node confirms within a moment uses up one version, and is told once. */
TEST(a_node_states_what_it_confirms)
{
    struct router_fixture f;
    uint64_t confirmed = 0;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    fixture_pass(&f, 50 * MILLISECONDS);
    (void)sent_of(f.up[0], 5, &confirmed);
    const uint32_t version = router_topology(f.router)->entry[5].version;
    for (uint64_t digest = 1; digest <= 100; digest++)
        router_confirm(f.router, digest);
    router_confirm(f.router, 100);
    fixture_pass(&f, 50 * MILLISECONDS);
    assert_int_equal(sent_of(f.up[0], 5, &confirmed), 1);
    assert_int_equal(confirmed, 100);
    assert_int_equal(router_topology(f.router)->entry[5].version, version + 1);
    fixture_close(&f);
}

TEST(an_older_neighbour_hears_of_no_confirmation)
{
    struct router_fixture f;
    uint64_t confirmed = 1;

    fixture_open(&f, "4x4", 5, NULL);
    router_set_minor(f.router, CONFIRM_MINOR);
    f.minor = CONFIRM_MINOR;
    fixture_link_up(&f, 0);
    f.minor = CONFIRM_MINOR - 1;
    fixture_link_up(&f, 1);
    router_confirm(f.router, 99);
    fixture_pass(&f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 2; port++) {
        assert_true(sent_of(f.up[port], 5, &confirmed) > 0);
        assert_int_equal(confirmed, 0);
    }
    fixture_close(&f);
}

static uint32_t own_forwards(const struct router_fixture *f)
{
    return router_topology(f->router)->entry[5].forwards;
}

/* It counts for a while only that a node forwards, and for less if whoever has said so has gone. */
TEST(a_node_forwards_as_long_as_that_is_said)
{
    struct router_fixture f;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    fixture_stay_up(&f, 0,
                    10 * FORWARD_LEASE); /* which must not count as time that this node slept */
    assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS_NOT);
    router_forward(f.router, true);
    fixture_stay_up(&f, 0, FORWARD_LEASE + 50 * MILLISECONDS);
    assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS_NOT);
    for (int i = 0; i < 3; i++) {
        router_forward(f.router, true);
        fixture_stay_up(&f, 0, FORWARD_LEASE / 2);
        assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS);
    }
    fixture_stay_up(&f, 0, FORWARD_LEASE / 2);
    fixture_pass(&f, 50 * MILLISECONDS);
    assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS_NOT);
    router_forward(f.router, true);
    fixture_pass(&f, 50 * MILLISECONDS);
    router_forward_lost(f.router);
    fixture_pass(&f, FORWARD_GRACE / 2);
    assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS);
    fixture_pass(&f, FORWARD_GRACE);
    assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS_NOT);
    router_forward(f.router, true);
    fixture_pass(&f, 50 * MILLISECONDS);
    router_forward_lost(f.router);
    router_forward(f.router, true); /* another process has taken over */
    fixture_say_heartbeat(f.up[0]);
    fixture_pass(&f, 2 * FORWARD_GRACE);
    assert_int_equal(own_forwards(&f), TOPOLOGY_FORWARDS);
    fixture_close(&f);
}

/* Changes of a moment are told together, when the moment is over. */
TEST(many_changes_are_gathered)
{
    struct router_fixture f;
    uint64_t confirmed = 0;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, 0);
    fixture_pass(&f, 50 * MILLISECONDS);
    (void)sent_of(f.up[0], 5, &confirmed);
    for (uint64_t digest = 1; digest <= 100; digest++) {
        router_confirm(f.router, digest);
        router_tick(f.router);
    }
    assert_int_equal(sent_of(f.up[0], 5, &confirmed), 0);
    fixture_pass(&f, 2 * MILLISECONDS);
    assert_int_equal(sent_of(f.up[0], 5, &confirmed), 1);
    assert_int_equal(confirmed, 100);
    fixture_close(&f);
}
