/* The streaming engine without bytes of the source, room in the sink, memory, or a link. See streaming_fixture.h. */
#include "failing_memory.h"
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

TEST(a_source_that_is_not_ready_is_asked_again)
{
    struct node *node = open_engine(&whole);

    node->source.asleep = true;
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, NULL);
    node->source.asleep = false;
    expect_frame(node, PLUS, NULL); /* until it says so */
    unsigned wakes = node->f.up[PLUS]->wakes;
    engine_wake(node->engine);
    assert_true(node->f.up[PLUS]->wakes > wakes);
    expect_frame(node, PLUS, &own_to_2);
    expect_frame(node, MINUS, &own_to_0);
    assert_int_equal(node->sink.bytes[1], 4);
    close_engine(node);
}

TEST(relayed_blocks_do_not_wait_for_the_source)
{
    const struct frame rest = {.streamed = true, .pieces = 1, .piece = {1}, .body = "Ff"};
    const struct frame begun = {.streamed = true, .pieces = 1, .piece = {1}, .body = "f"};
    const struct frame end = {.streamed = true, .pieces = 1, .piece = {1}, .body = "F"};
    struct node *node = open_engine(&whole);

    node->source.asleep_for = 2;
    engine_admit(node->engine, 0);
    accepts(node, &from_0);
    expect_frame(node, PLUS, &on_to_2);
    expect_frame(node, PLUS, NULL);
    close_engine(node);

    node = open_engine(&whole); /* and a part of it is better than nothing */
    engine_admit(node->engine, 0);
    node->source.sleeps_soon = 1;
    accepts(node, &from_0);
    expect_frame(node, PLUS, &begun);
    expect_frame(node, PLUS, &on_to_2);
    expect_frame(node, PLUS, NULL);
    node->source.sleeps_soon = 2;
    expect_frame(node, PLUS, NULL); /* until it says so */
    engine_wake(node->engine);
    expect_frame(node, PLUS, &rest);
    expect_frame(node, PLUS, NULL);
    node->source.sleeps_soon = UINT32_MAX;
    engine_wake(node->engine);
    expect_frame(node, PLUS, &end);
    expect_frame(node, PLUS, NULL);
    close_engine(node);
}

/* A block is read front to back: the next round is not read before the missing bytes of this one. */
TEST(a_round_does_not_overtake_the_one_before)
{
    const struct how how = {.block = 6, .round_bytes = 3, .window = 2};
    const struct frame to_2[] = {
        {.streamed = true, .pieces = 1, .piece = {1}, .body = "fFf"},
        {.streamed = true, .round = 1, .pieces = 1, .piece = {1}, .body = "FfF"}};
    struct node *node = open_engine(&how);

    engine_admit(node->engine, 0);
    engine_admit(node->engine, 1);
    node->source.naps = 1; /* the next round's could be read */
    expect_frame(node, PLUS, NULL);
    expect_frame(node, PLUS, NULL);
    engine_wake(node->engine);
    expect_frame(node, PLUS, &to_2[0]);
    expect_frame(node, PLUS, &to_2[1]);
    close_engine(node);

    node = open_engine(&how); /* the same when a part could be read */
    engine_admit(node->engine, 0);
    engine_admit(node->engine, 1);
    node->source.sleeps_soon = 2;
    const struct frame part = {.streamed = true, .pieces = 1, .piece = {1}, .body = "fF"};
    const struct frame rest = {.streamed = true, .pieces = 1, .piece = {1}, .body = "f"};
    expect_frame(node, PLUS, &part);
    expect_frame(node, PLUS, NULL);
    node->source.sleeps_soon = UINT32_MAX;
    engine_wake(node->engine);
    expect_frame(node, PLUS, &rest);
    expect_frame(node, PLUS, &to_2[1]);
    close_engine(node);
}

TEST(our_own_block_may_come_late)
{
    struct node *node = open_engine(&whole);
    char text[100];

    node->source.asleep_for = 1;
    engine_admit(node->engine, 0);
    accepts(node, &from_0);
    accepts(node, &from_2);
    for (unsigned port = PLUS; port <= MINUS; port++)
        message_forget(next_data(node, port, (uint8_t[BODY_MOST]){0}, &(uint32_t){0}));
    assert_int_equal(node->engine->rounds_finished, 0);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text, "reading its own block for itself");
    node->source.asleep_for = NODES_MOST;
    node->source.sleeps_soon = 3;
    engine_wake(node->engine);
    assert_int_equal(node->sink.bytes[1], 3);
    assert_int_equal(node->engine->rounds_finished, 0);
    node->source.sleeps_soon = UINT32_MAX;
    engine_wake(node->engine);
    assert_int_equal(node->sink.bytes[1], 4);
    assert_int_equal(node->engine->rounds_finished, 1);
    close_engine(node);
}

static void run_whole_round(struct node *node)
{
    engine_admit(node->engine, 0);
    accepts(node, &from_0);
    accepts(node, &from_2);
    for (unsigned port = PLUS; port <= MINUS; port++) {
        static uint8_t body[BODY_MOST];
        uint32_t length;
        struct peer_message *head = next_data(node, port, body, &length);
        assert_non_null(head);
        assert_int_equal(length, 8);
        message_forget(head);
    }
}

TEST(a_round_waits_for_the_sink)
{
    struct node *node = open_engine(&whole);
    char text[100];

    node->sink.pending = 4;
    run_whole_round(node);
    assert_int_equal(node->engine->rounds_finished, 0);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text, "writing received data");
    node->sink.pending = 0;
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 1);
    close_engine(node);
}

static void count_arrived(void *context, uint32_t origin, uint64_t begin, uint64_t end)
{
    uint64_t *bytes = context;

    *bytes += end - begin;
}

static uint64_t arrived(const struct node *node)
{
    uint64_t bytes = 0;
    node->engine->ops->arrived(node->engine, count_arrived, &bytes);
    return bytes;
}

TEST(kept_bytes_are_reported_unless_the_sink_has_failed)
{
    struct node *node = open_engine(&whole);

    engine_admit(node->engine, 0);
    uint64_t own = arrived(node);
    accepts(node, &from_0);
    uint64_t more = arrived(node);
    assert_true(more > own);
    node->sink.failing = true;
    accepts(node, &from_2);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(arrived(node), 0);
    close_engine(node);
}

TEST(our_own_failures_are_no_fault_of_the_peer)
{
    struct node *node = open_engine(&whole);

    engine_admit(node->engine, 0);
    node->sink.failing = true;
    accepts(node, &from_0);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, SINK_FAILS);
    expect_frame(node, PLUS, NULL); /* nothing is sent after a failure */
    accepts(node, &from_2);         /* received frames are only checked */
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 0);
    close_engine(node);

    node = open_engine(&whole);
    node->source.asleep = true;
    engine_admit(node->engine, 0);
    node->source.asleep = false;
    node->source.failing = true;
    expect_frame(node, PLUS, NULL);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
    accepts(node, &from_0);
    expect_frame(node, PLUS, NULL);
    close_engine(node);

    node = open_engine(&whole); /* after a part of a frame has been filled */
    engine_admit(node->engine, 0);
    accepts(node, &from_0);
    node->source.failing = true;
    expect_frame(node, PLUS, NULL);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
    close_engine(node);
}

static void drain_ports(struct node *node)
{
    node_drain(node, PLUS);
    node_drain(node, MINUS);
}

/* Frames that name their pieces' sizes, where blocks have different ones. */
static struct frame with_sizes(struct frame frame, const struct how *how)
{
    if (how->sizes)
        frame.sizes = 2;
    frame.size[0] = frame.size[1] = 4;
    return frame;
}

/* Every allocation fails once: only the exchange may fail. */
static bool run_out_of_memory(const struct how *how, unsigned after)
{
    struct node *node = open_engine(how);
    const struct frame first = with_sizes(from_0, how);
    const struct frame second = with_sizes(in_round(&from_0, 1, "bBbBcCcC"), how);
    const struct frame part = with_sizes(in_round(&from_2, 0, "gGgGhH"), how);
    struct frame rest = in_round(&from_2, 0, "hH");

    rest.pieces = 1;
    rest.piece[0] = 1;
    node->sink.careless = true; /* sizes put the second round elsewhere */
    memory_fails(after);
    if (node->f.up[MINUS]->link != NULL)
        send_frame(node, &first);
    if (node->f.up[PLUS]->link != NULL)
        send_frame(node, &part);
    drain_ports(node);
    engine_admit(node->engine, 0);
    engine_admit(node->engine, 1);
    if (node->f.up[MINUS]->link != NULL)
        send_frame(node, &second);
    if (node->f.up[PLUS]->link != NULL)
        send_frame(node, &rest);
    drain_ports(node);
    bool failed = memory_failed();
    check_out_of_memory(node, failed);
    close_engine(node);
    return failed;
}

TEST(memory_may_be_over_at_any_moment)
{
    const struct how copied = {.block = 8, .round_bytes = 4, .window = 2};
    const struct how kept = {.block = 8, .sizes = true, .round_bytes = 100, .window = 2};

    for (int i = 0; i < 2; i++) {
        unsigned after = 0;
        while (run_out_of_memory(i == 0 ? &copied : &kept, after))
            after++;
        assert_in_range(after, 6, 200);
    }
}

TEST(nothing_is_sent_on_a_link_that_was_down)
{
    struct node *node = open_engine(&whole);

    engine_admit(node->engine, 0);
    engine_lose_port(node->engine, PLUS);
    accepts(node, &from_0);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &own_to_0);
    accepts(node, &from_2);
    expect_frame(node, MINUS, &on_to_0);
    assert_int_equal(node->engine->rounds_finished, 0);
    close_engine(node);
}

TEST(where_it_stands_can_be_said)
{
    struct node *node = open_engine(&whole);
    char text[100];

    engine_admit(node->engine, 0);
    accepts(node, &from_0);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text,
                        "waiting for 2 pieces, the first one from node 2 on port +0 to node 2");
    accepts(node, &from_2);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text, "still sending 4 pieces");
    message_forget(next_data(node, PLUS, (uint8_t[BODY_MOST]){0}, &(uint32_t){0}));
    message_forget(next_data(node, MINUS, (uint8_t[BODY_MOST]){0}, &(uint32_t){0}));
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text, "all sent and received");
    close_engine(node);
}
