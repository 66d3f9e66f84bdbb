/* The streaming engine in allgathers and broadcasts, at node 1 of a mesh of three:
 *
 *     0  ->  1  ->  0 1
 *      1 2  <-  1  <-  2
 *
 * and, where a block is to leave by more ports, in the middle of a mesh of 3 x 3. The letters of the
 * blocks are those for node 1, wherever they go: 0 b, 1 e, 2 h. */
#include "failing_memory.h"
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

static const struct how line = {.dims = "3m", .algorithm = "balanced", .rank = 1, .block = 4};
static const struct frame one_from_0 = {
    .streamed = true, .port = MINUS, .pieces = 1, .piece = {0}, .body = "bBbB"};
static const struct frame one_from_2 = {
    .streamed = true, .port = PLUS, .pieces = 1, .piece = {0}, .body = "hHhH"};
static const struct frame own_on_plus = {
    .streamed = true, .pieces = 1, .piece = {1}, .body = "eEeE"};
static const struct frame own_on_minus = {
    .streamed = true, .pieces = 1, .piece = {0}, .body = "eEeE"};
static const struct frame own_alone = {.streamed = true, .pieces = 1, .piece = {0}, .body = "eEeE"};
static const struct frame on_plus = {.streamed = true, .pieces = 1, .piece = {0}, .body = "bBbB"};
static const struct frame on_minus = {.streamed = true, .pieces = 1, .piece = {1}, .body = "hHhH"};

ENGINE_TEST(a_block_stays_and_goes_on)
{
    struct node *node = open_engine(&line);
    const struct engine_counts *counts = &node->engine->counts;

    expect_frame(node, PLUS, NULL); /* not admitted */
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &own_on_plus);
    assert_int_equal(node->sink.bytes[1], 4); /* read once, for ourselves too, */
    node->source.failing = true;
    expect_frame(node, MINUS, &own_on_minus); /* and for the other port */
    node->source.failing = false;
    accepts(node, &one_from_0);
    assert_int_equal(node->sink.bytes[0], 4);
    expect_frame(node, MINUS, NULL);
    expect_frame(node, PLUS, &on_plus);
    accepts(node, &one_from_2);
    assert_int_equal(node->engine->rounds_finished, 0);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &on_minus);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.bytes[2], 4);
    assert_int_equal(counts->blocks_delivered, 2);
    assert_int_equal(counts->bytes_delivered, 8);
    for (unsigned port = PLUS; port <= MINUS; port++) {
        assert_int_equal(counts->port[port].tx_bytes, 8);
        assert_int_equal(counts->port[port].rx_bytes, 4);
        assert_int_equal(counts->port[port].tx_blocks, 2);
    }
}

/* Blocks that neighbours send early are passed on; our own waits until it may leave. */
ENGINE_TEST(neighbours_may_be_ahead)
{
    struct node *node = open_engine(&line);

    accepts(node, &one_from_0);
    expect_frame(node, PLUS, &on_plus);
    expect_frame(node, PLUS, NULL);
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &own_on_plus);
}

/* Reads the next frame of a port, of one piece of the block of node 4; returns its bytes. */
static uint32_t own_bytes(struct node *node, unsigned port, uint32_t offset)
{
    static uint8_t body[BODY_MOST];
    uint32_t length = 0;
    struct peer_message *head = next_data(node, port, body, &length);

    if (head == NULL)
        return 0;
    assert_int_equal(head->streamed_data.n_pieces, 1);
    for (uint32_t i = 0; i < length; i++)
        assert_int_equal(body[i], letter(4, 4, offset + i));
    message_forget(head);
    return length;
}

/* Four ports, each at its own pace: none waits for another, nothing is read twice. */
TEST(each_port_at_its_own_pace)
{
    static const uint64_t blocks[] = {60, 200}; /* copied; kept where they were read */

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
        const struct how how = {
            .dims = "3mx3m", .algorithm = "balanced", .rank = 4, .block = blocks[i]};
        struct node *node = open_engine(&how);
        uint32_t sent[4] = {0};
        engine_admit(node->engine, 0);
        node->source.sleeps_soon = 20;
        sent[0] = own_bytes(node, 0, 0);
        assert_int_equal(sent[0], 20);
        assert_int_equal(own_bytes(node, 0, 20), 0);
        sent[1] = own_bytes(node, 1, 0); /* the bytes that are there */
        assert_int_equal(sent[1], 20);
        node->source.sleeps_soon = 30;
        unsigned wakes = node->f.up[0]->wakes;
        sent[2] = own_bytes(node, 2, 0); /* which asks again, and has more for the others */
        assert_int_equal(sent[2], 50);
        assert_true(node->f.up[0]->wakes > wakes);
        sent[0] += own_bytes(node, 0, 20);
        assert_int_equal(sent[0], 50);
        assert_int_equal(own_bytes(node, 0, 50), 0);
        node->source.sleeps_soon = UINT32_MAX;
        engine_wake(node->engine);
        for (unsigned port = 0; port < 4; port++)
            sent[port] += own_bytes(node, port, sent[port]);
        for (unsigned port = 0; port < 4; port++)
            assert_int_equal(sent[port], blocks[i]);
        assert_int_equal(node->sink.bytes[4], blocks[i]);
        close_engine(node);
    }
}

ENGINE_TEST(a_part_goes_on_before_the_rest_has_come)
{
    const struct frame in[] = {
        {.streamed = true, .port = MINUS, .pieces = 1, .piece = {0}, .body = "bB"},
        {.streamed = true, .port = MINUS, .pieces = 1, .piece = {0}, .body = "bB"}};
    const struct frame out = {.streamed = true, .pieces = 1, .piece = {0}, .body = "bB"};
    struct node *node = open_engine(&line);

    for (int i = 0; i < 2; i++) {
        accepts(node, &in[i]);
        expect_frame(node, PLUS, &out);
        expect_frame(node, PLUS, NULL);
    }
    assert_int_equal(node->sink.bytes[0], 4);
}

ENGINE_TEST(sizes_of_their_own)
{
    const struct how how = {.dims = "3m",
                            .algorithm = "balanced",
                            .rank = 1,
                            .block = 3,
                            .sizes = true,
                            .round_bytes = 100};
    const struct frame empty = {.streamed = true,
                                .port = MINUS,
                                .pieces = 1,
                                .piece = {0},
                                .sizes = 1,
                                .size = {0},
                                .body = ""};
    const struct frame long_one = {.streamed = true,
                                   .port = PLUS,
                                   .pieces = 1,
                                   .piece = {0},
                                   .sizes = 1,
                                   .size = {6},
                                   .body = "hHhHhH"};
    const struct frame plus = {
        .streamed = true, .pieces = 2, .piece = {1, 0}, .sizes = 2, .size = {3, 0}, .body = "eEe"};
    const struct frame minus = {.streamed = true,
                                .pieces = 2,
                                .piece = {0, 1},
                                .sizes = 2,
                                .size = {3, 6},
                                .body = "eEehHhHhH"};
    struct node *node = open_engine(&how);

    node->source.size[0] = node->source.size[2] = 77; /* of an allgather only our own counts */
    engine_admit(node->engine, 0);
    accepts(node, &empty);
    accepts(node, &long_one);
    assert_int_equal(node->sink.writes[0], 1); /* a file may have to be made of it */
    expect_frame(node, PLUS, &plus);
    expect_frame(node, MINUS, &minus);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.bytes[2], 6);
}

ENGINE_TEST(blocks_of_nothing)
{
    const struct how how = {
        .dims = "3m", .algorithm = "disjoint", .rank = 1, .block = 0, .round_bytes = 1};
    struct node *node = begin_engine(&how);

    expect_frame(node, PLUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
}

ENGINE_TEST(rounds_follow_each_other)
{
    const struct how how = {.dims = "3m",
                            .algorithm = "balanced",
                            .rank = 1,
                            .block = 6,
                            .round_bytes = 3,
                            .window = 2};
    const struct frame own[] = {
        {.streamed = true, .pieces = 1, .piece = {1}, .body = "eEe"},
        {.streamed = true, .round = 1, .pieces = 1, .piece = {1}, .body = "EeE"}};
    const struct frame back[] = {
        {.streamed = true, .pieces = 1, .piece = {0}, .body = "eEe"},
        {.streamed = true, .round = 1, .pieces = 1, .piece = {0}, .body = "EeE"}};
    struct node *node = begin_engine(&how);

    engine_admit(node->engine, 1);
    node->source.naps = 1; /* the next round's could be read: not before this one's */
    expect_frame(node, PLUS, NULL);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &back[0]); /* which asks again, for both */
    expect_frame(node, PLUS, &own[0]);
    expect_frame(node, PLUS, &own[1]);
    expect_frame(node, MINUS, &back[1]);
    assert_int_equal(node->sink.bytes[1], 6);
    accepts(node, &(struct frame){
                      .streamed = true, .port = MINUS, .pieces = 1, .piece = {0}, .body = "bBb"});
    accepts(
        node,
        &(struct frame){
            .streamed = true, .round = 1, .port = MINUS, .pieces = 1, .piece = {0}, .body = "BbB"});
    expect_frame(node, PLUS,
                 &(struct frame){.streamed = true, .pieces = 1, .piece = {0}, .body = "bBb"});
    expect_frame(
        node, PLUS,
        &(struct frame){.streamed = true, .round = 1, .pieces = 1, .piece = {0}, .body = "BbB"});
    assert_int_equal(node->engine->rounds_finished, 0);
    accepts(node, &(struct frame){
                      .streamed = true, .port = PLUS, .pieces = 1, .piece = {0}, .body = "hHh"});
    expect_frame(node, MINUS,
                 &(struct frame){.streamed = true, .pieces = 1, .piece = {1}, .body = "hHh"});
    assert_int_equal(node->engine->rounds_finished, 1);
}

/* A broadcast: a node without a block only relays; its links carry only the sender's block. */
TEST(only_the_sender_has_a_block)
{
    struct how how = {.dims = "3m",
                      .algorithm = "balanced",
                      .rank = 1,
                      .block = 4,
                      .broadcast = true,
                      .sender = 0};
    struct node *node = open_engine(&how);

    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 0);
    accepts(node, &one_from_0);
    expect_frame(node, PLUS, &on_plus);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 1);
    assert_int_equal(node->sink.bytes[1], 0);
    close_engine(node);

    how.sender = 1;
    node = open_engine(&how);
    engine_admit(node->engine, 0);
    expect_frame(node, MINUS, &own_on_minus);
    assert_int_equal(node->engine->rounds_finished, 0);
    expect_frame(node, PLUS, &own_alone);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.bytes[1], 4);
    close_engine(node);
}

/* A block of 4 KiB and its digest leave together, and are passed on together. */
ENGINE_TEST(a_digest_has_no_frame_of_its_own)
{
    static uint8_t body[BODY_MOST];
    struct how how = {.dims = "3m",
                      .algorithm = "balanced",
                      .rank = 1,
                      .block = 4096 + 8,
                      .broadcast = true,
                      .sender = 1};
    struct node *node = begin_engine(&how);

    for (unsigned port = PLUS; port <= MINUS; port++) {
        uint32_t length;
        struct peer_message *head = next_data(node, port, body, &length);
        assert_non_null(head);
        assert_int_equal(length, 4096 + 8);
        message_forget(head);
        expect_frame(node, port, NULL);
    }
    assert_int_equal(node->engine->rounds_finished, 1);
}

/* The frame is refused, whatever came before, and the engine itself does not fail. */
static void refuses(const struct how *how, const struct frame *bad, const char *text)
{
    struct node *node = open_engine(how);

    engine_admit(node->engine, 0);
    node->sink.careless = true;
    send_frame(node, bad);
    assert_null(node->f.up[bad->port]->link);
    assert_contains(node->f.up[bad->port]->last, text);
    assert_null(engine_failed(node->engine));
    assert_int_equal(node->engine->rounds_finished, 0);
    close_engine(node);
}

ENGINE_TEST(frames_that_break_the_protocol_are_refused)
{
    const struct how other = {.dims = "3m",
                              .algorithm = "balanced",
                              .rank = 1,
                              .block = 4,
                              .broadcast = true,
                              .sender = 2};
    const struct how sized = {.dims = "3m",
                              .algorithm = "balanced",
                              .rank = 1,
                              .block = 4,
                              .sizes = true,
                              .round_bytes = 4};
    struct frame bad;

    bad = one_from_0, bad.piece[0] = 1; /* ours, back */
    refuses(&line, &bad, "no piece 1: this channel has ");
    bad = one_from_0, bad.pieces = 2, bad.body = "bBbBb";
    refuses(&line, &bad, "piece 0 has arrived");
    bad = one_from_0, bad.body = "bBbBb";
    refuses(&line, &bad, "1 byte more than");
    bad = one_from_0, bad.body = "";
    refuses(&line, &bad, "the frame has no byte of it");
    bad = one_from_0, bad.round = 1;
    refuses(&line, &bad, "data of round 1");
    refuses(&other, &one_from_0, "no piece 0: this channel has ");
    refuses(&sized, &one_from_0, "piece 0 without a size");
    bad = one_from_0, bad.sizes = 1, bad.size[0] = 5;
    refuses(&sized, &bad, "a piece of 5 bytes");
    bad = one_from_0, bad.sizes = 2, bad.size[0] = 4, bad.size[1] = 4;
    refuses(&sized, &bad, "1 size more than");

    struct node *node = open_engine(&line); /* twice, after it has gone on */
    accepts(node, &one_from_0);
    expect_frame(node, PLUS, &on_plus);
    send_frame(node, &one_from_0);
    assert_null(node->f.up[MINUS]->link);
    assert_int_equal(node->sink.bytes[0], 4);
}

ENGINE_TEST(a_lost_port_does_not_hold_up_the_others)
{
    struct node *node = open_engine(&line);

    engine_lose_port(node->engine, PLUS);
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &own_on_minus);
    accepts(node, &one_from_2);
    expect_frame(node, MINUS, &on_minus);
    assert_int_equal(node->sink.bytes[1], 4);
}

TEST(our_own_failures)
{
    struct node *node = open_engine(&line);

    engine_admit(node->engine, 0);
    node->source.failing = true;
    expect_frame(node, PLUS, NULL);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
    accepts(node, &one_from_0); /* only looked at */
    expect_frame(node, PLUS, NULL);
    close_engine(node);

    node = open_engine(&line);
    engine_admit(node->engine, 0);
    node->sink.failing = true;
    expect_frame(node, PLUS, NULL); /* our own goes there first */
    assert_int_equal(engine_failed(node->engine)->code, SINK_FAILS);
    close_engine(node);
}

ENGINE_TEST(where_it_stands)
{
    struct node *node = begin_engine(&line);
    char text[100];

    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text,
                        "waiting for 2 pieces, the first one from node 0 on port -0 to node 0");
    accepts(node, &one_from_0);
    accepts(node, &one_from_2);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text, "still sending 4 pieces");
}

static void drain(struct node *node)
{
    static uint8_t body[BODY_MOST];
    uint32_t length;
    struct peer_message *head;

    for (unsigned port = PLUS; port <= MINUS; port++)
        while ((head = next_data(node, port, body, &length)) != NULL)
            message_forget(head);
}

/* Every allocation fails once: only the allgather may fail. */
static bool run_out_of_memory(const struct how *how, const char *body, unsigned after)
{
    struct node *node = open_engine(how);
    struct frame from[] = {one_from_0, one_from_2};

    node->sink.careless = true;
    memory_fails(after);
    engine_admit(node->engine, 0);
    drain(node); /* reads our own */
    for (int i = 0; i < 2; i++) {
        from[i].body = body;
        if (node->f.up[from[i].port]->link != NULL)
            send_frame(node, &from[i]);
    }
    drain(node);
    bool failed = memory_failed();
    check_out_of_memory(node, failed);
    close_engine(node);
    return failed;
}

TEST(memory_may_be_over_at_any_moment)
{
    struct how how = line;
    char body[201] = {0};

    memset(body, 'x', 200);
    for (int i = 0; i < 2; i++) {
        unsigned after = 0;
        how.block = i == 0 ? 4 : 200;
        while (run_out_of_memory(&how, i == 0 ? "xxxx" : body, after))
            after++;
        assert_in_range(after, 5, 200);
    }
}

/* The streaming engine without bytes of the source, room in the sink, memory, or a link. See streaming_fixture.h. */

ENGINE_TEST(a_source_that_is_not_ready_is_asked_again)
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

ENGINE_TEST(our_own_block_may_come_late)
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

ENGINE_TEST(a_round_waits_for_the_sink)
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

ENGINE_TEST(kept_bytes_are_reported_unless_the_sink_has_failed)
{
    struct node *node = begin_engine(&whole);

    uint64_t own = arrived(node);
    accepts(node, &from_0);
    uint64_t more = arrived(node);
    assert_true(more > own);
    node->sink.failing = true;
    accepts(node, &from_2);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(arrived(node), 0);
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
static bool run_out_of_memory_while_waiting(const struct how *how, unsigned after)
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

TEST(memory_may_be_over_at_any_moment_while_waiting)
{
    const struct how copied = {.block = 8, .round_bytes = 4, .window = 2};
    const struct how kept = {.block = 8, .sizes = true, .round_bytes = 100, .window = 2};

    for (int i = 0; i < 2; i++) {
        unsigned after = 0;
        while (run_out_of_memory_while_waiting(i == 0 ? &copied : &kept, after))
            after++;
        assert_in_range(after, 6, 200);
    }
}

ENGINE_TEST(nothing_is_sent_on_a_link_that_was_down)
{
    struct node *node = begin_engine(&whole);

    engine_lose_port(node->engine, PLUS);
    accepts(node, &from_0);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &own_to_0);
    accepts(node, &from_2);
    expect_frame(node, MINUS, &on_to_0);
    assert_int_equal(node->engine->rounds_finished, 0);
}

ENGINE_TEST(where_it_stands_can_be_said)
{
    struct node *node = begin_engine(&whole);
    char text[100];

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
}
