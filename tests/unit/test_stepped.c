/* The stepped engine with a plan made by hand, for node 1 of a ring of three:
 *
 *     step 1: it sends 1->2; takes in 0->1 and 0->2 (to be sent on); relays 2->0
 *     step 2: it sends 0->2 on; takes in 2->1 */
#include "daemon/torusd/engine/stepped.h"
#include "engine_fixture.h"
#include "tests/support/cmocka.h"

static struct node *open_engine(bool uniform, uint64_t block, uint32_t segment)
{
    struct node *node = node_open("3", 1, block);
    struct error e;

    node->setup.uniform = uniform;
    node->setup.round_bytes = segment;
    node->engine = stepped_new(&node->setup, &engine_fixture_plan, &e);
    assert_non_null(node->engine);
    node_connect(node);
    return node;
}

static const struct frame from_0 = {.port = MINUS, .hops = 1, .body = "bBbBcCcC"};
static const struct frame relayed = {.port = PLUS, .hops = 2, .left = 1, .body = "gGgG"};
static const struct frame relayed_on = {.hops = 2, .left = 0, .body = "gGgG"};
static const struct frame from_2 = {.port = PLUS, .step = 1, .hops = 1, .body = "hHhH"};
static const struct frame to_2 = {.hops = 1, .left = 0, .body = "fFfF"};
static const struct frame to_2_on = {.step = 1, .hops = 1, .left = 0, .body = "cCcC"};

TEST(a_round_runs_step_by_step)
{
    struct node *node = open_engine(true, 4, 4);

    expect_frame(node, PLUS, NULL); /* not started */
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &to_2);
    expect_frame(node, PLUS, NULL); /* step 2 waits for what step 1 takes in */
    accepts(node, &from_0);
    expect_frame(node, PLUS, &to_2_on);
    assert_int_equal(node->engine->rounds_finished, 0);
    accepts(node, &from_2);
    assert_int_equal(node->engine->rounds_finished, 0); /* something is still to be relayed */
    accepts(node, &relayed);
    expect_frame(node, MINUS, &relayed_on);
    expect_frame(node, MINUS, NULL);
    expect_frame(node, PLUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.bytes[0], 4);
    assert_int_equal(node->sink.bytes[1], 4);
    assert_int_equal(node->sink.bytes[2], 4);
    const struct engine_counts *counts = &node->engine->counts;
    assert_int_equal(counts->blocks_delivered, 2);
    assert_int_equal(counts->bytes_delivered, 8);
    assert_int_equal(counts->port[PLUS].tx_bytes, 8);
    assert_int_equal(counts->port[PLUS].tx_blocks, 2);
    assert_int_equal(counts->port[PLUS].combined_messages, 2);
    assert_int_equal(counts->port[PLUS].rx_bytes, 8);
    assert_int_equal(counts->port[MINUS].tx_bytes, 4);
    assert_int_equal(counts->port[MINUS].tx_blocks, 1);
    assert_int_equal(counts->port[MINUS].combined_messages, 0);
    assert_int_equal(counts->port[MINUS].rx_bytes, 8);
    assert_int_equal(counts->step_blocks[0], 1);
    assert_int_equal(counts->step_blocks[1], 1);
    node_close(node);
}

TEST(neighbours_may_be_ahead)
{
    struct node *node = open_engine(true, 4, 4);

    accepts(node, &from_2); /* before we have heard `go` */
    accepts(node, &relayed);
    accepts(node, &from_0);
    engine_admit(node->engine, 0);
    expect_frame(node, MINUS, &relayed_on);
    expect_frame(node, PLUS, &to_2);
    expect_frame(node, PLUS, &to_2_on);
    assert_int_equal(node->engine->rounds_finished, 1);
    node_close(node);
}

TEST(rounds_follow_each_other)
{
    struct frame frame;
    struct node *node = open_engine(true, 4, 3); /* rounds of 3 bytes and of 1 */

    engine_admit(node->engine, 0);
    for (uint32_t round = 0; round < 2; round++) {
        static const char *const bodies[][6] = {{"fFf", "bBbcCc", "cCc", "hHh", "gGg", "gGg"},
                                                {"F", "BC", "C", "H", "G", "G"}};
        static const struct frame *const kinds[] = {&to_2,   &from_0,  &to_2_on,
                                                    &from_2, &relayed, &relayed_on};
        for (int i = 0; i < 6; i++) {
            frame = *kinds[i];
            frame.round = round;
            frame.body = bodies[round][i];
            if (kinds[i] == &to_2 || kinds[i] == &to_2_on)
                expect_frame(node, PLUS, &frame);
            else if (kinds[i] == &relayed_on)
                expect_frame(node, MINUS, &frame);
            else
                accepts(node, &frame);
            if (round == 0 && kinds[i] == &relayed) {
                /* A neighbour has heard of the next round before us. */
                frame = from_2;
                frame.round = 1;
                frame.body = "H";
                assert_int_equal(node->engine->rounds_finished, round + 1);
                accepts(node, &frame);
            }
            if (round == 1 && i == 2)
                i++; /* that one has come */
        }
        assert_int_equal(node->engine->rounds_finished, round + 1);
        if (round == 0)
            engine_admit(node->engine, 1);
    }
    assert_int_equal(node->sink.bytes[0], 4);
    assert_int_equal(node->sink.bytes[2], 4);
    assert_int_equal(node->engine->counts.bytes_delivered, 8);
    assert_int_equal(node->engine->counts.port[PLUS].tx_blocks, 4);
    node_close(node);
}

/* Lengths of the frames in which a node of a ring of five sends its messages by one port, one block
 * each: step 1 to the neighbour, step 2 over two links. */
static void expect_lengths(uint32_t frame, const uint32_t *one_hop, const uint32_t *two_hops)
{
    static struct plan_block block[] = {{.source = 1, .destination = 2, .slot = PLAN_NO_SLOT},
                                        {.source = 1, .destination = 3, .slot = PLAN_NO_SLOT}};
    static struct plan_message send[] = {
        {.step = 0, .blocks = 1, .first = 0, .hops = 1, .left = 1, .port = PLUS},
        {.step = 0, .blocks = 1, .first = 1, .hops = 2, .left = 2, .port = PLUS},
    };
    static const struct plan one_way = {
        .rank = 1, .steps = 1, .sends = 2, .send = send, .blocks = 2, .block = block};
    static uint8_t body[BODY_MOST];
    struct node *node = node_open("5", 1, BLOCK_MOST);
    struct error e;

    node->setup.relayed = frame;
    node->engine = stepped_new(&node->setup, &one_way, &e);
    assert_non_null(node->engine);
    node_connect(node);
    engine_admit(node->engine, 0);
    for (unsigned hops = 1; hops <= 2; hops++) {
        const uint32_t *expected = hops == 1 ? one_hop : two_hops;
        for (; *expected > 0; expected++) {
            uint32_t length;
            struct peer_message *head = next_data(node, PLUS, body, &length);
            assert_non_null(head);
            assert_int_equal(head->stepped_data.hops, hops);
            assert_int_equal(length, *expected);
            message_forget(head);
        }
    }
    expect_frame(node, PLUS, NULL);
    node_close(node);
}

TEST(only_what_is_relayed_has_short_frames)
{
    static const uint32_t whole[] = {BLOCK_MOST, 0}, cut[] = {1400, 1400, BLOCK_MOST - 2800, 0};
    static const uint32_t with_the_rest[] = {BLOCK_MOST / 2 - 10, BLOCK_MOST / 2 + 10, 0};

    expect_lengths(1400, whole, cut);
    expect_lengths(16 * 1024, whole, whole);
    expect_lengths(0, whole, whole);
    /* A few bytes do not get a frame of their own. */
    expect_lengths(BLOCK_MOST - 8, whole, whole);
    expect_lengths(BLOCK_MOST / 2 - 10, whole, with_the_rest);
}

TEST(a_message_may_come_in_any_frames)
{
    static const char all[] = "bBbBcCcC";

    for (size_t a = 0; a <= 8; a++)
        for (size_t b = a; b <= 8; b++) {
            char part[3][9] = {{0}};
            memcpy(part[0], all, a);
            memcpy(part[1], all + a, b - a);
            memcpy(part[2], all + b, 8 - b);
            struct node *node = open_engine(true, 4, 4);
            engine_admit(node->engine, 0);
            for (int i = 0; i < 3; i++) {
                struct frame frame = from_0;
                frame.body = part[i];
                if (i < 2 || b < 8) /* nothing may follow the last byte */
                    if (i < 1 || a < 8)
                        accepts(node, &frame);
            }
            expect_frame(node, PLUS, &to_2);
            expect_frame(node, PLUS, &to_2_on);
            assert_int_equal(node->sink.bytes[0], 4);
            node_close(node);
        }
}

TEST(blocks_of_different_sizes_say_how_long_they_are)
{
    const struct frame in = {.port = MINUS, .hops = 1, .sizes = 2, .size = {0, 3}, .body = "cCc"};
    const struct frame out = {.hops = 1, .sizes = 1, .size = {2}, .body = "fF"};
    const struct frame on = {.step = 1, .hops = 1, .sizes = 1, .size = {3}, .body = "cCc"};
    const struct frame through = {
        .port = PLUS, .hops = 2, .left = 1, .sizes = 1, .size = {1}, .body = "g"};
    const struct frame through_on = {.hops = 2, .sizes = 1, .size = {1}, .body = "g"};
    const struct frame empty = {
        .port = PLUS, .step = 1, .hops = 1, .sizes = 1, .size = {0}, .body = ""};
    struct node *node = open_engine(false, 2, 100);

    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &out);
    accepts(node, &in);
    expect_frame(node, PLUS, &on);
    accepts(node, &through);
    expect_frame(node, MINUS, &through_on);
    accepts(node, &empty);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.writes[0], 1); /* an empty block is a block */
    assert_int_equal(node->sink.bytes[0], 0);
    assert_int_equal(node->sink.writes[2], 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
    node_close(node);
}

/* The frame is refused as the first frame, and also after a part of the message has arrived. */
static void refuses(bool uniform, const struct frame *bad, const char *text)
{
    for (int half = 0; half < 2; half++) {
        struct frame first = from_0;
        struct node *node = open_engine(uniform, 4, 4);
        node->sink.careless = true;
        engine_admit(node->engine, 0);
        if (!uniform) {
            first.sizes = 1;
            first.size[0] = 3;
        }
        first.body = uniform ? "b" : "bB";
        if (half == 1)
            accepts(node, &first);
        send_frame(node, bad);
        assert_null(node->f.up[bad->port]->link);
        if (half == 0 && strstr(node->f.up[bad->port]->last, text) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", text, node->f.up[bad->port]->last);
        assert_null(engine_failed(node->engine)); /* the peer's fault, not ours */
        node_close(node);
    }
}

TEST(frames_that_the_schedule_does_not_know_are_refused)
{
    struct frame bad;

    bad = from_0, bad.streamed = true;
    refuses(true, &bad, "data without a step");
    bad = from_0, bad.round = 1;
    refuses(true, &bad, "data of round 1");
    bad = from_0, bad.round = UINT32_MAX;
    refuses(true, &bad, "data of round");
    bad = from_0, bad.step = 1;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.step = UINT32_MAX;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.hops = 2;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.hops = 65537;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.left = 1;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.left = 65536;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.port = PLUS;
    refuses(true, &bad, "is expected here");
    bad = relayed, bad.left = 0;
    refuses(true, &bad, "is expected here");
    bad = from_0, bad.body = "bBbBcCcCc";
    refuses(true, &bad, "1 byte more than");
    bad = from_0, bad.sizes = 1, bad.size[0] = 4;
    refuses(true, &bad, "1 size more than");
    bad = relayed, bad.body = "ggggg";
    refuses(true, &bad, "1 byte more than");
}

TEST(sizes_that_cannot_be_are_refused)
{
    struct frame bad;

    bad = (struct frame){.port = MINUS, .hops = 1, .sizes = 3, .size = {1, 1, 1}, .body = "bc"};
    refuses(false, &bad, "1 size more than");
    bad = (struct frame){.port = MINUS, .hops = 1, .sizes = 2, .size = {1, 5}, .body = "bbb"};
    refuses(false, &bad, "a piece of 5 bytes");
    bad =
        (struct frame){.port = MINUS, .hops = 1, .sizes = 2, .size = {0, UINT32_MAX}, .body = "b"};
    refuses(false, &bad, "a piece of 4294967295 bytes");
    bad = (struct frame){.port = MINUS, .hops = 1, .body = "bbbb"};
    refuses(false, &bad, "bytes more than");
    bad = (struct frame){
        .port = PLUS, .hops = 2, .left = 1, .sizes = 1, .size = {5}, .body = "ggggg"};
    refuses(false, &bad, "a piece of 5 bytes");
}

/* A round of 8 bytes in two segments: no piece has more than 4. */
TEST(a_piece_is_not_longer_than_its_segment)
{
    const struct frame longest = {
        .port = MINUS, .hops = 1, .sizes = 2, .size = {4, 1}, .body = "bBbBc"};
    const struct frame bad = {.port = MINUS, .hops = 1, .sizes = 1, .size = {5}, .body = "bBbBb"};
    const struct frame *const frames[] = {&longest, &bad};

    for (int i = 0; i < 2; i++) {
        struct node *node = node_open("3", 1, 8);
        struct error e;
        node->setup.uniform = false;
        node->setup.segments = 2;
        node->engine = stepped_new(&node->setup, &engine_fixture_plan, &e);
        assert_non_null(node->engine);
        node_connect(node);
        send_frame(node, frames[i]);
        assert_int_equal(node->f.up[MINUS]->link == NULL, i == 1);
        if (i == 1)
            assert_contains(node->f.up[MINUS]->last, "a piece of 5 bytes");
        node_close(node);
    }
}

TEST(a_message_comes_once)
{
    static const struct frame *const messages[] = {&from_0, &relayed};

    for (size_t i = 0; i < 2; i++) {
        struct frame again = *messages[i];
        struct node *node = open_engine(true, 4, 4);
        engine_admit(node->engine, 0);
        accepts(node, messages[i]);
        again.body = "";
        send_frame(node, &again);
        assert_null(node->f.up[again.port]->link);
        assert_contains(node->f.up[again.port]->last, "arrived twice");
        node_close(node);
    }
}

/* Each waiting frame takes memory, even if it is short. */
TEST(a_message_does_not_come_in_short_frames)
{
    static const struct frame *const messages[] = {&from_0, &relayed};

    for (size_t i = 0; i < 4; i++) {
        struct frame short_frame = *messages[i % 2];
        struct node *node = open_engine(true, BLOCK_MOST, BLOCK_MOST);
        unsigned sent = 0;
        short_frame.body = i < 2 ? "x" : "";
        node->sink.careless = true;
        engine_admit(node->engine, 0);
        for (; node->f.up[short_frame.port]->link != NULL && sent < 1000; sent++)
            send_frame(node, &short_frame);
        assert_in_range(sent, 10, 100);
        assert_non_null(
            strstr(node->f.up[short_frame.port]->last, "bytes each from the middle of pieces"));
        node_close(node);
    }
}

TEST(a_source_that_is_not_ready_is_asked_again)
{
    struct node *node = open_engine(true, 4, 4);

    node->source.asleep = true;
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, NULL);
    node->source.asleep = false;
    expect_frame(node, PLUS, NULL); /* until it says so */
    unsigned wakes = node->f.up[PLUS]->wakes;
    engine_wake(node->engine);
    assert_true(node->f.up[PLUS]->wakes > wakes);
    expect_frame(node, PLUS, &to_2);
    assert_int_equal(node->sink.bytes[1], 4);
    node_close(node);
}

TEST(a_round_waits_for_the_sink)
{
    struct node *node = open_engine(true, 4, 4);

    engine_admit(node->engine, 0);
    node->sink.pending = 4;
    accepts(node, &from_0);
    accepts(node, &from_2);
    accepts(node, &relayed);
    expect_frame(node, PLUS, &to_2);
    expect_frame(node, PLUS, &to_2_on);
    assert_int_equal(node->engine->rounds_finished, 0);
    node->sink.pending = 0;
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 1);
    node_close(node);
}

TEST(our_own_failures_are_no_fault_of_the_peer)
{
    struct node *node = open_engine(true, 4, 4);

    engine_admit(node->engine, 0);
    node->sink.failing = true;
    accepts(node, &from_0);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, SINK_FAILS);
    expect_frame(node, PLUS, NULL); /* nothing is sent after a failure */
    node_close(node);

    node = open_engine(true, 4, 4);
    node->source.failing = true;
    engine_admit(node->engine, 0);
    assert_int_equal(engine_failed(node->engine)->code, SOURCE_FAILS);
    node_close(node);
}

TEST(nothing_is_sent_on_a_link_that_was_down)
{
    struct node *node = open_engine(true, 4, 4);

    engine_admit(node->engine, 0);
    engine_lose_port(node->engine, PLUS);
    expect_frame(node, PLUS, NULL);
    accepts(node, &relayed);
    expect_frame(node, MINUS, &relayed_on);
    node_close(node);

    node = open_engine(true, 4, 4);
    engine_admit(node->engine, 0);
    engine_lose_port(node->engine, MINUS);
    accepts(node, &relayed);
    expect_frame(node, MINUS, NULL);
    expect_frame(node, PLUS, &to_2);
    node_close(node);
}

TEST(where_it_stands_can_be_said)
{
    char text[100];
    struct node *node = open_engine(true, 4, 4);

    engine_admit(node->engine, 0);
    accepts(node, &relayed);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text,
                        "step 1 of 2, waiting for the message of step 1 on port -0 to node 0");
    accepts(node, &from_0);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text,
                        "step 2 of 2, waiting for the message of step 2 on port +0 to node 2");
    node_close(node);

    node = open_engine(true, 4, 4);
    engine_admit(node->engine, 0);
    accepts(node, &from_0);
    accepts(node, &from_2);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text,
                        "step 2 of 2, waiting for the message of step 1 on port +0 to node 2");
    accepts(node, &relayed);
    engine_describe(node->engine, text, sizeof text);
    assert_string_equal(text, "step 2 of 2, still sending");
    node_close(node);
}
