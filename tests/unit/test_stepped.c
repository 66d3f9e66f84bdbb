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

/* ENGINE_TEST(BEGIN, NAME) { ... }: a test with the `node` that BEGIN returns. */
#define ENGINE_TEST(begin, name) OBJECT_TEST(struct node *, node, begin, node_close(node), name)

#define FROM_0 "h1 bBbBcCcC" /* at MINUS */
#define RELAYED "h2 l1 gGgG" /* at PLUS */
#define RELAYED_ON "h2 gGgG"
#define FROM_2 "s1 h1 hHhH" /* at PLUS */
#define TO_2 "h1 fFfF"
#define TO_2_ON "s1 h1 cCcC"

ENGINE_TEST(open_engine(true, 4, 4), a_round_runs_step_by_step)
{
    expect(node, PLUS, NULL); /* not started */
    engine_admit(node->engine, 0);
    expect(node, PLUS, TO_2);
    expect(node, PLUS, NULL); /* step 2 waits for what step 1 takes in */
    sends(node, MINUS, FROM_0);
    expect(node, PLUS, TO_2_ON);
    assert_int_equal(node->engine->rounds_finished, 0);
    sends(node, PLUS, FROM_2);
    assert_int_equal(node->engine->rounds_finished, 0); /* something is still to be relayed */
    sends(node, PLUS, RELAYED);
    expect(node, MINUS, RELAYED_ON);
    expect(node, MINUS, NULL);
    expect(node, PLUS, NULL);
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
}

ENGINE_TEST(open_engine(true, 4, 4), neighbours_may_be_ahead)
{
    sends(node, PLUS, FROM_2); /* before we have heard `go` */
    sends(node, PLUS, RELAYED);
    sends(node, MINUS, FROM_0);
    engine_admit(node->engine, 0);
    expect(node, MINUS, RELAYED_ON);
    expect(node, PLUS, TO_2);
    expect(node, PLUS, TO_2_ON);
    assert_int_equal(node->engine->rounds_finished, 1);
}

/* Rounds of 3 bytes and of 1. */
ENGINE_TEST(open_engine(true, 4, 3), rounds_follow_each_other)
{
    engine_admit(node->engine, 0);
    expect(node, PLUS, "h1 fFf");
    sends(node, MINUS, "h1 bBbcCc");
    expect(node, PLUS, "s1 h1 cCc");
    sends(node, PLUS, "s1 h1 hHh");
    sends(node, PLUS, "h2 l1 gGg");
    assert_int_equal(node->engine->rounds_finished, 1);
    sends(node, PLUS, "r1 s1 h1 H"); /* a neighbour has heard of the next round before us */
    expect(node, MINUS, "h2 gGg");
    assert_int_equal(node->engine->rounds_finished, 1);
    engine_admit(node->engine, 1);
    expect(node, PLUS, "r1 h1 F");
    sends(node, MINUS, "r1 h1 BC");
    expect(node, PLUS, "r1 s1 h1 C");
    sends(node, PLUS, "r1 h2 l1 G");
    expect(node, MINUS, "r1 h2 G");
    assert_int_equal(node->engine->rounds_finished, 2);
    assert_int_equal(node->sink.bytes[0], 4);
    assert_int_equal(node->sink.bytes[2], 4);
    assert_int_equal(node->engine->counts.bytes_delivered, 8);
    assert_int_equal(node->engine->counts.port[PLUS].tx_blocks, 4);
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

    const uint32_t frames[2] = {frame, frame};
    node->setup.relayed = frame > 0 ? frames : NULL;
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
    expect(node, PLUS, NULL);
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
                struct frame frame = frame_of(MINUS, FROM_0);
                frame.body = part[i];
                if (i < 2 || b < 8) /* nothing may follow the last byte */
                    if (i < 1 || a < 8)
                        accepts(node, &frame);
            }
            expect(node, PLUS, TO_2);
            expect(node, PLUS, TO_2_ON);
            assert_int_equal(node->sink.bytes[0], 4);
            node_close(node);
        }
}

ENGINE_TEST(open_engine(false, 2, 100), blocks_of_different_sizes_say_how_long_they_are)
{
    engine_admit(node->engine, 0);
    expect(node, PLUS, "h1 =2 fF");
    sends(node, MINUS, "h1 =0 =3 cCc");
    expect(node, PLUS, "s1 h1 =3 cCc");
    sends(node, PLUS, "h2 l1 =1 g");
    expect(node, MINUS, "h2 =1 g");
    sends(node, PLUS, "s1 h1 =0 -");
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.writes[0], 1); /* an empty block is a block */
    assert_int_equal(node->sink.bytes[0], 0);
    assert_int_equal(node->sink.writes[2], 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
}

struct refusal {
    unsigned port;
    const char *frame, *reason;
};

/* The frames are refused as the first frame, and also after a part of the message has arrived. */
static void refuses(bool uniform, const struct refusal *rows, size_t count)
{
    for (size_t i = 0; i < 2 * count; i++) {
        const struct refusal *bad = &rows[i / 2];
        struct node *node = open_engine(uniform, 4, 4);
        node->sink.careless = true;
        engine_admit(node->engine, 0);
        if (i % 2 == 1)
            sends(node, MINUS, uniform ? "h1 b" : "h1 =3 bB");
        sends_bad(node, bad->port, bad->frame, i % 2 == 0 ? bad->reason : "");
        node_close(node);
    }
}

TEST(frames_that_the_schedule_does_not_know_are_refused)
{
    static const struct refusal rows[] = {
        {MINUS, "bBbBcCcC", "data without a step"},
        {MINUS, "r1 h1 bBbBcCcC", "data of round 1"},
        {MINUS, "r4294967295 h1 bBbBcCcC", "data of round"},
        {MINUS, "s1 h1 bBbBcCcC", "is expected here"},
        {MINUS, "s4294967295 h1 bBbBcCcC", "is expected here"},
        {MINUS, "h2 bBbBcCcC", "is expected here"},
        {MINUS, "h65537 bBbBcCcC", "is expected here"},
        {MINUS, "h1 l1 bBbBcCcC", "is expected here"},
        {MINUS, "h1 l65536 bBbBcCcC", "is expected here"},
        {PLUS, "h1 bBbBcCcC", "is expected here"},
        {PLUS, "h2 gGgG", "is expected here"},
        {MINUS, "h1 bBbBcCcCc", "1 byte more than"},
        {MINUS, "h1 =4 bBbBcCcC", "1 size more than"},
        {PLUS, "h2 l1 ggggg", "1 byte more than"},
    };

    refuses(true, rows, sizeof rows / sizeof *rows);
}

TEST(sizes_that_cannot_be_are_refused)
{
    static const struct refusal rows[] = {
        {MINUS, "h1 =1 =1 =1 bc", "1 size more than"},
        {MINUS, "h1 =1 =5 bbb", "a piece of 5 bytes"},
        {MINUS, "h1 =0 =4294967295 b", "a piece of 4294967295 bytes"},
        {MINUS, "h1 bbbb", "bytes more than"},
        {PLUS, "h2 l1 =5 ggggg", "a piece of 5 bytes"},
    };

    refuses(false, rows, sizeof rows / sizeof *rows);
}

/* A round of 8 bytes in two segments: no piece has more than 4. */
TEST(a_piece_is_not_longer_than_its_segment)
{
    for (int i = 0; i < 2; i++) {
        struct node *node = node_open("3", 1, 8);
        struct error e;
        node->setup.uniform = false;
        node->setup.segments = 2;
        node->engine = stepped_new(&node->setup, &engine_fixture_plan, &e);
        assert_non_null(node->engine);
        node_connect(node);
        if (i == 0)
            sends(node, MINUS, "h1 =4 =1 bBbBc");
        else
            sends_bad(node, MINUS, "h1 =5 bBbBb", "a piece of 5 bytes");
        node_close(node);
    }
}

TEST(a_message_comes_once)
{
    for (unsigned port = PLUS; port <= MINUS; port++) {
        struct node *node = open_engine(true, 4, 4);
        engine_admit(node->engine, 0);
        sends(node, port, port == MINUS ? FROM_0 : RELAYED);
        sends_bad(node, port, port == MINUS ? "h1 -" : "h2 l1 -", "arrived twice");
        node_close(node);
    }
}

/* Each waiting frame takes memory, even if it is short. */
TEST(a_message_does_not_come_in_short_frames)
{
    for (size_t i = 0; i < 4; i++) {
        struct frame short_frame = i % 2 == 0 ? frame_of(MINUS, FROM_0) : frame_of(PLUS, RELAYED);
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

ENGINE_TEST(open_engine(true, 4, 4), a_source_that_is_not_ready_is_asked_again)
{
    node->source.asleep = true;
    engine_admit(node->engine, 0);
    expect(node, PLUS, NULL);
    node->source.asleep = false;
    expect(node, PLUS, NULL); /* until it says so */
    unsigned wakes = node->f.up[PLUS]->wakes;
    engine_wake(node->engine);
    assert_true(node->f.up[PLUS]->wakes > wakes);
    expect(node, PLUS, TO_2);
    assert_int_equal(node->sink.bytes[1], 4);
}

ENGINE_TEST(open_engine(true, 4, 4), a_round_waits_for_the_sink)
{
    engine_admit(node->engine, 0);
    node->sink.pending = 4;
    sends(node, MINUS, FROM_0);
    sends(node, PLUS, FROM_2);
    sends(node, PLUS, RELAYED);
    expect(node, PLUS, TO_2);
    expect(node, PLUS, TO_2_ON);
    assert_int_equal(node->engine->rounds_finished, 0);
    node->sink.pending = 0;
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 1);
}

TEST(our_own_failures_are_no_fault_of_the_peer)
{
    struct node *node = open_engine(true, 4, 4);

    engine_admit(node->engine, 0);
    node->sink.failing = true;
    sends(node, MINUS, FROM_0);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, SINK_FAILS);
    expect(node, PLUS, NULL); /* nothing is sent after a failure */
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
    expect(node, PLUS, NULL);
    sends(node, PLUS, RELAYED);
    expect(node, MINUS, RELAYED_ON);
    node_close(node);

    node = open_engine(true, 4, 4);
    engine_admit(node->engine, 0);
    engine_lose_port(node->engine, MINUS);
    sends(node, PLUS, RELAYED);
    expect(node, MINUS, NULL);
    expect(node, PLUS, TO_2);
    node_close(node);
}

TEST(where_it_stands_can_be_said)
{
    struct node *node = open_engine(true, 4, 4);

    engine_admit(node->engine, 0);
    sends(node, PLUS, RELAYED);
    expect_described(node, "step 1 of 2, waiting for the message of step 1 on port -0 to node 0");
    sends(node, MINUS, FROM_0);
    expect_described(node, "step 2 of 2, waiting for the message of step 2 on port +0 to node 2");
    node_close(node);

    node = open_engine(true, 4, 4);
    engine_admit(node->engine, 0);
    sends(node, MINUS, FROM_0);
    sends(node, PLUS, FROM_2);
    expect_described(node, "step 2 of 2, waiting for the message of step 1 on port +0 to node 2");
    sends(node, PLUS, RELAYED);
    expect_described(node, "step 2 of 2, still sending");
    node_close(node);
}
