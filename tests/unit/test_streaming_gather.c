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
#define ONE_FROM_0 "0 bBbB" /* at MINUS */
#define ONE_FROM_2 "0 hHhH" /* at PLUS */
#define OWN_ON_PLUS "1 eEeE"
#define OWN_ON_MINUS "0 eEeE"
#define OWN_ALONE "0 eEeE"
#define ON_PLUS "0 bBbB"
#define ON_MINUS "1 hHhH"

ENGINE_TEST(open_engine(&line), a_block_stays_and_goes_on)
{
    const struct engine_counts *counts = &node->engine->counts;

    expect(node, PLUS, NULL); /* not admitted */
    engine_admit(node->engine, 0);
    expect(node, PLUS, OWN_ON_PLUS);
    assert_int_equal(node->sink.bytes[1], 4); /* read once, for ourselves too, */
    node->source.failing = true;
    expect(node, MINUS, OWN_ON_MINUS); /* and for the other port */
    node->source.failing = false;
    sends(node, MINUS, ONE_FROM_0);
    assert_int_equal(node->sink.bytes[0], 4);
    expect(node, MINUS, NULL);
    expect(node, PLUS, ON_PLUS);
    sends(node, PLUS, ONE_FROM_2);
    assert_int_equal(node->engine->rounds_finished, 0);
    expect(node, PLUS, NULL);
    expect(node, MINUS, ON_MINUS);
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
ENGINE_TEST(open_engine(&line), neighbours_may_be_ahead)
{
    sends(node, MINUS, ONE_FROM_0);
    expect(node, PLUS, ON_PLUS);
    expect(node, PLUS, NULL);
    engine_admit(node->engine, 0);
    expect(node, PLUS, OWN_ON_PLUS);
}

static void drain_ports(struct node *node)
{
    node_drain(node, PLUS);
    node_drain(node, MINUS);
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

ENGINE_TEST(open_engine(&line), a_part_goes_on_before_the_rest_has_come)
{
    for (int i = 0; i < 2; i++) {
        sends(node, MINUS, "0 bB");
        expect(node, PLUS, "0 bB");
        expect(node, PLUS, NULL);
    }
    assert_int_equal(node->sink.bytes[0], 4);
}

ENGINE_TEST(OPEN_ENGINE(.dims = "3m", .algorithm = "balanced", .rank = 1, .block = 3, .sizes = true,
                        .round_bytes = 100),
            sizes_of_their_own)
{
    node->source.size[0] = node->source.size[2] = 77; /* of an allgather only our own counts */
    engine_admit(node->engine, 0);
    sends(node, MINUS, "0=0 -");
    sends(node, PLUS, "0=6 hHhHhH");
    assert_int_equal(node->sink.writes[0], 1); /* a file may have to be made of it */
    expect(node, PLUS, "1=3 0=0 eEe");
    expect(node, MINUS, "0=3 1=6 eEehHhHhH");
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.bytes[2], 6);
}

ENGINE_TEST(BEGIN_ENGINE(.dims = "3m", .algorithm = "disjoint", .rank = 1, .block = 0,
                         .round_bytes = 1),
            blocks_of_nothing)
{
    expect(node, PLUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
}

ENGINE_TEST(BEGIN_ENGINE(.dims = "3m", .algorithm = "balanced", .rank = 1, .block = 6,
                         .round_bytes = 3, .window = 2),
            rounds_follow_each_other)
{
    engine_admit(node->engine, 1);
    node->source.naps = 1; /* the next round's could be read: not before this one's */
    expect(node, PLUS, NULL);
    expect(node, PLUS, NULL);
    expect(node, MINUS, "0 eEe"); /* which asks again, for both */
    expect(node, PLUS, "1 eEe");
    expect(node, PLUS, "r1 1 EeE");
    expect(node, MINUS, "r1 0 EeE");
    assert_int_equal(node->sink.bytes[1], 6);
    sends(node, MINUS, "0 bBb");
    sends(node, MINUS, "r1 0 BbB");
    expect(node, PLUS, "0 bBb");
    expect(node, PLUS, "r1 0 BbB");
    assert_int_equal(node->engine->rounds_finished, 0);
    sends(node, PLUS, "0 hHh");
    expect(node, MINUS, "1 hHh");
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
    expect(node, PLUS, NULL);
    expect(node, MINUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 0);
    sends(node, MINUS, ONE_FROM_0);
    expect(node, PLUS, ON_PLUS);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 1);
    assert_int_equal(node->sink.bytes[1], 0);
    close_engine(node);

    how.sender = 1;
    node = open_engine(&how);
    engine_admit(node->engine, 0);
    expect(node, MINUS, OWN_ON_MINUS);
    assert_int_equal(node->engine->rounds_finished, 0);
    expect(node, PLUS, OWN_ALONE);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.bytes[1], 4);
    close_engine(node);
}

/* A block of 4 KiB and its digest leave together, and are passed on together. */
ENGINE_TEST(BEGIN_ENGINE(.dims = "3m", .algorithm = "balanced", .rank = 1, .block = 4096 + 8,
                         .broadcast = true, .sender = 1),
            a_digest_has_no_frame_of_its_own)
{
    static uint8_t body[BODY_MOST];

    for (unsigned port = PLUS; port <= MINUS; port++) {
        uint32_t length;
        struct peer_message *head = next_data(node, port, body, &length);
        assert_non_null(head);
        assert_int_equal(length, 4096 + 8);
        message_forget(head);
        expect(node, port, NULL);
    }
    assert_int_equal(node->engine->rounds_finished, 1);
}

TEST_WITH(NULL, engine_teardown, frames_that_break_the_protocol_are_refused)
{
    static const struct how other = {.dims = "3m",
                                     .algorithm = "balanced",
                                     .rank = 1,
                                     .block = 4,
                                     .broadcast = true,
                                     .sender = 2};
    static const struct how irregular = {.dims = "3m",
                                         .algorithm = "balanced",
                                         .rank = 1,
                                         .block = 4,
                                         .sizes = true,
                                         .round_bytes = 4};
    static const struct {
        const struct how *how;
        const char *frame, *reason;
    } rows[] = {
        {&line, "1 bBbB", "piece 1 out of range: the channel has "}, /* ours, back */
        {&line, "0 0 bBbBb", "piece 0 arrived twice"},
        {&line, "0 bBbBb", "1 byte more than"},
        {&line, "0 -", "the frame has none of its bytes"},
        {&line, "r1 0 bBbB", "data of round 1"},
        {&other, ONE_FROM_0, "piece 0 out of range: the channel has "},
        {&irregular, ONE_FROM_0, "piece 0 without a size"},
        {&irregular, "0=5 bBbB", "a piece of 5 bytes"},
        {&irregular, "0=4 =4 bBbB", "1 size more than"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) { /* whatever came before */
        struct node *node = begin_engine(rows[i].how);
        node->sink.careless = true;
        sends_bad(node, MINUS, rows[i].frame, rows[i].reason);
        assert_int_equal(node->engine->rounds_finished, 0);
        close_engine(node);
    }
    struct node *node = open_engine(&line); /* twice, after it has gone on */
    sends(node, MINUS, ONE_FROM_0);
    expect(node, PLUS, ON_PLUS);
    sends_bad(node, MINUS, ONE_FROM_0, "");
    assert_int_equal(node->sink.bytes[0], 4);
}

ENGINE_TEST(open_engine(&line), a_lost_port_does_not_hold_up_the_others)
{
    engine_lose_port(node->engine, PLUS);
    engine_admit(node->engine, 0);
    expect(node, PLUS, NULL);
    expect(node, MINUS, OWN_ON_MINUS);
    sends(node, PLUS, ONE_FROM_2);
    expect(node, MINUS, ON_MINUS);
    assert_int_equal(node->sink.bytes[1], 4);
}

ENGINE_TEST(open_engine(&line), our_own_failures)
{
    engine_admit(node->engine, 0);
    node->source.failing = true;
    expect(node, PLUS, NULL);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
    sends(node, MINUS, ONE_FROM_0); /* only looked at */
    expect(node, PLUS, NULL);
    close_engine(node);

    node = open_engine(&line);
    engine_admit(node->engine, 0);
    node->sink.failing = true;
    expect(node, PLUS, NULL); /* our own goes there first */
    assert_int_equal(engine_failed(node->engine)->code, SINK_FAILS);
}

ENGINE_TEST(begin_engine(&line), where_it_stands)
{
    expect_described(node, "waiting for 2 pieces, the first one from node 0 on port -0 to node 0");
    sends(node, MINUS, ONE_FROM_0);
    sends(node, PLUS, ONE_FROM_2);
    expect_described(node, "still sending 4 pieces");
}

/* Every allocation fails once: only the allgather may fail. */
static bool run_out_of_memory(const struct how *how, const char *body, unsigned after)
{
    struct node *node = open_engine(how);
    struct frame from[] = {frame_of(MINUS, ONE_FROM_0), frame_of(PLUS, ONE_FROM_2)};

    node->sink.careless = true;
    memory_fails(after);
    engine_admit(node->engine, 0);
    drain_ports(node); /* reads our own */
    for (int i = 0; i < 2; i++) {
        from[i].body = body;
        if (node->f.up[from[i].port]->link != NULL)
            send_frame(node, &from[i]);
    }
    drain_ports(node);
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

ENGINE_TEST(open_engine(&whole), a_source_that_is_not_ready_is_asked_again)
{
    node->source.asleep = true;
    engine_admit(node->engine, 0);
    expect(node, PLUS, NULL);
    node->source.asleep = false;
    expect(node, PLUS, NULL); /* until it says so */
    unsigned wakes = node->f.up[PLUS]->wakes;
    engine_wake(node->engine);
    assert_true(node->f.up[PLUS]->wakes > wakes);
    expect(node, PLUS, OWN_TO_2);
    expect(node, MINUS, OWN_TO_0);
    assert_int_equal(node->sink.bytes[1], 4);
}

ENGINE_TEST(open_engine(&whole), relayed_blocks_do_not_wait_for_the_source)
{
    node->source.asleep_for = 2;
    engine_admit(node->engine, 0);
    sends(node, MINUS, FROM_0);
    expect(node, PLUS, ON_TO_2);
    expect(node, PLUS, NULL);
    close_engine(node);

    node = open_engine(&whole); /* and a part of it is better than nothing */
    engine_admit(node->engine, 0);
    node->source.sleeps_soon = 1;
    sends(node, MINUS, FROM_0);
    expect(node, PLUS, "1 f");
    expect(node, PLUS, ON_TO_2);
    expect(node, PLUS, NULL);
    node->source.sleeps_soon = 2;
    expect(node, PLUS, NULL); /* until it says so */
    engine_wake(node->engine);
    expect(node, PLUS, "1 Ff");
    expect(node, PLUS, NULL);
    node->source.sleeps_soon = UINT32_MAX;
    engine_wake(node->engine);
    expect(node, PLUS, "1 F");
    expect(node, PLUS, NULL);
}

/* A block is read front to back: the next round is not read before the missing bytes of this one. */
TEST(a_round_does_not_overtake_the_one_before)
{
    const struct how how = {.block = 6, .round_bytes = 3, .window = 2};
    struct node *node = open_engine(&how);

    engine_admit(node->engine, 0);
    engine_admit(node->engine, 1);
    node->source.naps = 1; /* the next round's could be read */
    expect(node, PLUS, NULL);
    expect(node, PLUS, NULL);
    engine_wake(node->engine);
    expect(node, PLUS, "1 fFf");
    expect(node, PLUS, "r1 1 FfF");
    close_engine(node);

    node = open_engine(&how); /* the same when a part could be read */
    engine_admit(node->engine, 0);
    engine_admit(node->engine, 1);
    node->source.sleeps_soon = 2;
    expect(node, PLUS, "1 fF");
    expect(node, PLUS, NULL);
    node->source.sleeps_soon = UINT32_MAX;
    engine_wake(node->engine);
    expect(node, PLUS, "1 f");
    expect(node, PLUS, "r1 1 FfF");
    close_engine(node);
}

ENGINE_TEST(open_engine(&whole), our_own_block_may_come_late)
{
    node->source.asleep_for = 1;
    engine_admit(node->engine, 0);
    sends(node, MINUS, FROM_0);
    sends(node, PLUS, FROM_2);
    drain_ports(node);
    assert_int_equal(node->engine->rounds_finished, 0);
    expect_described(node, "reading its own block for itself");
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

ENGINE_TEST(open_engine(&whole), a_round_waits_for_the_sink)
{
    node->sink.pending = 4;
    engine_admit(node->engine, 0);
    sends(node, MINUS, FROM_0);
    sends(node, PLUS, FROM_2);
    expect(node, PLUS, "1 0 fFfFcCcC");
    expect(node, MINUS, "0 1 dDdDgGgG");
    assert_int_equal(node->engine->rounds_finished, 0);
    expect_described(node, "writing received data");
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

ENGINE_TEST(begin_engine(&whole), kept_bytes_are_reported_unless_the_sink_has_failed)
{
    uint64_t own = arrived(node);
    sends(node, MINUS, FROM_0);
    uint64_t more = arrived(node);
    assert_true(more > own);
    node->sink.failing = true;
    sends(node, PLUS, FROM_2);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(arrived(node), 0);
}

ENGINE_TEST(open_engine(&whole), our_own_failures_are_no_fault_of_the_peer)
{
    engine_admit(node->engine, 0);
    node->sink.failing = true;
    sends(node, MINUS, FROM_0);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, SINK_FAILS);
    expect(node, PLUS, NULL);  /* nothing is sent after a failure */
    sends(node, PLUS, FROM_2); /* received frames are only checked */
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 0);
    close_engine(node);

    node = open_engine(&whole);
    node->source.asleep = true;
    engine_admit(node->engine, 0);
    node->source.asleep = false;
    node->source.failing = true;
    expect(node, PLUS, NULL);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
    sends(node, MINUS, FROM_0);
    expect(node, PLUS, NULL);
    close_engine(node);

    node = open_engine(&whole); /* after a part of a frame has been filled */
    engine_admit(node->engine, 0);
    sends(node, MINUS, FROM_0);
    node->source.failing = true;
    expect(node, PLUS, NULL);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
}

/* Every allocation fails once: only the exchange may fail. */
static bool run_out_of_memory_while_waiting(const struct how *how, unsigned after)
{
    struct node *node = open_engine(how);
    const bool sizes = how->sizes;
    const struct frame first = frame_of(MINUS, sizes ? "0=4 1=4 bBbBcCcC" : FROM_0);
    const struct frame second = frame_of(MINUS, sizes ? "r1 0=4 1=4 bBbBcCcC" : "r1 0 1 bBbBcCcC");
    const struct frame part = frame_of(PLUS, sizes ? "0=4 1=4 gGgGhH" : "0 1 gGgGhH");
    const struct frame rest = frame_of(PLUS, "1 hH");

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

ENGINE_TEST(begin_engine(&whole), nothing_is_sent_on_a_link_that_was_down)
{
    engine_lose_port(node->engine, PLUS);
    sends(node, MINUS, FROM_0);
    expect(node, PLUS, NULL);
    expect(node, MINUS, OWN_TO_0);
    sends(node, PLUS, FROM_2);
    expect(node, MINUS, ON_TO_0);
    assert_int_equal(node->engine->rounds_finished, 0);
}

ENGINE_TEST(begin_engine(&whole), where_it_stands_can_be_said)
{
    sends(node, MINUS, FROM_0);
    expect_described(node, "waiting for 2 pieces, the first one from node 2 on port +0 to node 2");
    sends(node, PLUS, FROM_2);
    expect_described(node, "still sending 4 pieces");
    drain_ports(node);
    expect_described(node, "all sent and received");
}
