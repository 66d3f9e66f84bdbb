/* Queues of frames to send, and neighbours that ask and do not read. */
#include "daemon/torusd/router/outgoing.h"
#include "router_fixture.h"
#include "tests/support/cmocka.h"
#include <stdio.h>
#include <string.h>

static const unsigned minus = 1;

static struct outgoing *frame_of(struct router_fixture *f, const struct peer_message *message)
{
    struct outgoing *frame = outgoing_new(router_outgoing(f->router));

    assert_non_null(frame);
    assert_int_equal(outgoing_set_message(frame, message), 0);
    return frame;
}

TEST(frames_for_a_lost_link_are_dropped)
{
    struct router_fixture f;
    const struct peer_message beat = {.kind = PEER_HEARTBEAT};
    struct peer_message *next;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    router_send(f.router, minus, &beat);
    router_relay(f.router, minus, frame_of(&f, &beat));
    link_closed(f.up[minus]->link, "reset");
    f.up[minus]->link = NULL;
    router_send(f.router, minus, &beat);
    router_relay(f.router, minus, frame_of(&f, &beat));
    fixture_link_up(&f, minus);
    assert_null(next = fixture_next(f.up[minus], NULL, 0, NULL));
    router_send(f.router, minus, &beat);
    next = fixture_next(f.up[minus], NULL, 0, NULL);
    assert_non_null(next);
    message_forget(next);
    fixture_close(&f);
}

/* The node there begins by `go`: on a slow link it must not wait for the data behind it. */
TEST(go_is_a_packet_of_its_own)
{
    struct router_fixture f;
    const struct peer_message beat = {.kind = PEER_HEARTBEAT}, go = {.kind = PEER_GO};
    struct outgoing *frame;

    fixture_open(&f, "4x4", 5, NULL);
    fixture_link_up(&f, minus);
    router_send(f.router, minus, &go);
    assert_non_null(frame = link_next(f.up[minus]->link));
    assert_true(frame->immediate);
    outgoing_free(router_outgoing(f.router), frame);
    router_send(f.router, minus, &beat);
    assert_non_null(frame = link_next(f.up[minus]->link));
    assert_false(frame->immediate);
    outgoing_free(router_outgoing(f.router), frame);
    fixture_close(&f);
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
    const struct router_handler handler = {a, answer, nothing, not_interested, NULL};

    fixture_open(&a->f, "4x4", 5, &handler);
    a->asked = 0;
    for (unsigned port = 0; port < 2; port++)
        fixture_link_up(&a->f, port);
    fixture_pass(&a->f, 50 * MILLISECONDS);
    for (unsigned port = 0; port < 2; port++)
        (void)fixture_entries_sent(a->f.up[port], 12);
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
    assert_non_null(strstr(a.f.up[0]->last, "node 9 has read nothing for 5 s"));
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
    fixture_pass(&a.f, ROUTER_STALL - 1); /* it is given its time to be heard again */
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
