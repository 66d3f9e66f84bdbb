/* The streaming engine: which pieces it moves, and when. See streaming_fixture.h. */
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

enum { PIECES = 700 };

ENGINE_TEST(open_engine(&whole), a_round_without_steps)
{
    const struct engine_counts *counts = &node->engine->counts;

    expect(node, PLUS, NULL); /* not admitted */
    engine_admit(node->engine, 0);
    expect(node, PLUS, OWN_TO_2);
    expect(node, PLUS, NULL);
    expect(node, MINUS, OWN_TO_0);
    assert_int_equal(node->sink.bytes[1], 4); /* our own for ourselves */
    sends(node, MINUS, FROM_0);
    assert_int_equal(node->sink.bytes[0], 4);
    expect(node, PLUS, ON_TO_2);
    sends(node, PLUS, FROM_2);
    assert_int_equal(node->engine->rounds_finished, 0); /* something is still to be sent on */
    expect(node, MINUS, ON_TO_0);
    assert_int_equal(node->engine->rounds_finished, 1);
    expect(node, PLUS, NULL);
    expect(node, MINUS, NULL);
    assert_int_equal(node->sink.bytes[2], 4);
    assert_int_equal(counts->blocks_delivered, 2);
    assert_int_equal(counts->bytes_delivered, 8);
    assert_int_equal(counts->delivered_at, node->f.now);
    for (unsigned port = PLUS; port <= MINUS; port++) {
        assert_int_equal(counts->port[port].tx_bytes, 8);
        assert_int_equal(counts->port[port].rx_bytes, 8);
        assert_int_equal(counts->port[port].tx_blocks, 2);
        assert_int_equal(counts->port[port].combined_messages, 2);
    }
    assert_int_equal(counts->steps, 0);
}

ENGINE_TEST(open_engine(&whole), waiting_blocks_leave_together)
{
    sends(node, MINUS, FROM_0);
    engine_admit(node->engine, 0);
    expect(node, PLUS, "0 1 cCcCfFfF");
    expect(node, PLUS, NULL);
}

/* A neighbour may hear of a round earlier: blocks for other nodes are passed on, our own wait. */
ENGINE_TEST(open_engine(&whole), neighbours_may_be_ahead)
{
    sends(node, MINUS, FROM_0);
    sends(node, PLUS, FROM_2);
    expect(node, PLUS, ON_TO_2);
    expect(node, PLUS, NULL);
    expect(node, MINUS, ON_TO_0);
    expect(node, MINUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 0);
    engine_admit(node->engine, 0);
    expect(node, PLUS, OWN_TO_2);
    expect(node, MINUS, OWN_TO_0);
    assert_int_equal(node->engine->rounds_finished, 1);
}

TEST(the_farthest_leave_first)
{
    const struct how how = {.dims = "4m", .rank = 0, .block = 4};
    const struct how next = {.dims = "4m", .rank = 1, .block = 4};
    struct node *node = open_engine(&how);

    engine_admit(node->engine, 0);
    expect(node, PLUS, "2 1 0 dDdDcCcCbBbB");
    close_engine(node);

    /* Node 1: the blocks 0->2 0->3 1->2 1->3 leave by + in this order. */
    node = open_engine(&next);
    assert_int_equal(passages.departures[PLUS], 4);
    engine_admit(node->engine, 0);
    sends(node, MINUS, "1 cCcC");
    sends(node, MINUS, "2 dDdD");
    expect(node, PLUS, "3 1 2 0 gGgGdDdDfFfFcCcC");
    close_engine(node);
}

/* The neighbour sends two blocks of 4 bytes, cut at a and b. */
static void run_cut_at(const struct how *how, size_t a, size_t b)
{
    static const char all[] = "bBbBcCcC";
    const size_t cut[] = {0, a, b, 8};
    struct node *node = open_engine(how);
    bool named[2] = {false};
    size_t out = 0;

    for (int i = 0; i < 3; i++) {
        char body[9] = {0};
        struct frame frame = {.streamed = true, .port = MINUS, .body = body};
        if (cut[i] == cut[i + 1])
            continue; /* nothing comes */
        memcpy(body, all + cut[i], cut[i + 1] - cut[i]);
        for (uint32_t piece = 0; piece < 2; piece++) {
            if (cut[i] >= 4 * piece + 4 || cut[i + 1] <= 4 * piece)
                continue;
            frame.piece[frame.pieces++] = piece;
            if (how->sizes && !named[piece])
                frame.size[frame.sizes++] = 4;
            named[piece] = true;
        }
        accepts(node, &frame);
        if (cut[i + 1] <= 4) {
            expect(node, PLUS, NULL);
            continue;
        }
        struct frame on = frame_of(PLUS, how->sizes && out == 0 ? "0=4 c" : "0 c");
        on.body = body + (cut[i] < 4) * (4 - cut[i]);
        expect_frame(node, PLUS, &on);
        out += strlen(on.body);
    }
    assert_int_equal(out, 4);
    assert_int_equal(node->sink.bytes[0], 4);
    assert_int_equal(node->engine->counts.port[PLUS].tx_blocks, 1);
    close_engine(node);
}

/* However it cuts them, everything is passed on, partly at once; both with copied bytes and with bytes that stay in
 * their slab. */
TEST(pieces_may_come_in_any_frames)
{
    const struct how kept = {.block = 4, .sizes = true, .round_bytes = 100};

    for (size_t a = 1; a <= 8; a++)
        for (size_t b = a; b <= 8; b++) {
            run_cut_at(&whole, a, b);
            run_cut_at(&kept, a, b);
        }
}

/* Of 3 + 3 + 2 bytes. */
ENGINE_TEST(BEGIN_ENGINE(.block = 8, .round_bytes = 3, .window = 2), several_rounds_are_under_way)
{
    engine_admit(node->engine, 1);
    sends(node, PLUS, "r0 0 1 gGghHh"); /* one neighbour is ahead of the other */
    sends(node, PLUS, "r1 0 1 GgGHhH");
    expect(node, MINUS, "0 1 dDdgGg"); /* the oldest round first */
    expect(node, MINUS, "r1 0 1 DdDGgG");
    expect(node, MINUS, NULL);
    expect(node, PLUS, "r0 1 fFf");
    expect(node, PLUS, "r1 1 FfF");
    assert_int_equal(node->engine->rounds_finished, 0);
    sends(node, MINUS, "r0 0 1 bBbcCc");
    sends(node, MINUS, "r1 0 1 BbBCcC");
    expect(node, PLUS, "r0 0 cCc");
    assert_int_equal(node->engine->rounds_finished, 1);
    expect(node, PLUS, "r1 0 CcC");
    assert_int_equal(node->engine->rounds_finished, 2);
}

ENGINE_TEST(BEGIN_ENGINE(.block = 8, .round_bytes = 3, .window = 2), rounds_follow_each_other)
{
    static const char *const frames[][6] = {
        {"r0 0 dDd", "r0 1 fFf", "r0 0 1 bBbcCc", "r0 0 cCc", "r0 0 1 gGghHh", "r0 1 gGg"},
        {"r1 0 DdD", "r1 1 FfF", "r1 0 1 BbBCcC", "r1 0 CcC", "r1 0 1 GgGHhH", "r1 1 GgG"},
        {"r2 0 dD", "r2 1 fF", "r2 0 1 bBcC", "r2 0 cC", "r2 0 1 gGhH", "r2 1 gG"},
    };

    for (uint32_t round = 0; round < 3; round++) {
        const char *const *const frame = frames[round];
        if (round < 2)
            engine_admit(node->engine, round + 1);
        expect(node, MINUS, frame[0]);
        expect(node, PLUS, frame[1]);
        sends(node, MINUS, frame[2]);
        expect(node, PLUS, frame[3]);
        sends(node, PLUS, frame[4]);
        assert_int_equal(node->engine->rounds_finished, round);
        expect(node, MINUS, frame[5]);
        assert_int_equal(node->engine->rounds_finished, round + 1);
        assert_int_equal(node->engine->counts.blocks_delivered, 2);
    }
    expect(node, MINUS, NULL);
    for (uint32_t origin = 0; origin < 3; origin++)
        assert_int_equal(node->sink.bytes[origin], 8);
    assert_int_equal(node->engine->counts.bytes_delivered, 16);
    assert_int_equal(node->engine->counts.port[PLUS].tx_blocks, 6);
}

/* Rounds are counted on: rounds of the second repetition read and write the blocks again. */
ENGINE_TEST(OPEN_ENGINE(.block = 4, .round_bytes = 3, .window = 2),
            repetitions_count_their_rounds_on)
{
    node->engine->rounds = 2;
    for (uint32_t round = 0; round < 4; round++) {
        if (round == 2) {
            memset(node->source.read, 0, sizeof node->source.read);
            memset(node->sink.got, 0, sizeof node->sink.got);
        }
        const bool full = round % 2 == 0;
        sends(node, MINUS,
              in_round(round, full ? "0 1 bBbcCc" : "0 1 BC")); /* before it is admitted */
        sends(node, PLUS, in_round(round, full ? "0 1 gGghHh" : "0 1 GH"));
        engine_admit(node->engine, round);
        expect(node, PLUS, in_round(round, full ? "0 1 cCcfFf" : "0 1 CF"));
        expect(node, MINUS, in_round(round, full ? "1 0 gGgdDd" : "1 0 GD"));
        assert_int_equal(node->engine->rounds_finished, round + 1);
    }
}

ENGINE_TEST(OPEN_ENGINE(.block = 2, .sizes = true, .round_bytes = 100), sizes_travel_along)
{
    node->source.size[0] = 0;
    engine_admit(node->engine, 0);
    sends(node, MINUS, "0=0 1=3 cCc");
    expect(node, PLUS, "1=2 0=3 fFcCc");
    sends(node, PLUS, "1=5 hH");
    sends(node, PLUS, "1=0 0 hHh");
    expect(node, MINUS, "0=0 1=0 -"); /* a block without bytes is a block */
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.writes[0], 1);
    assert_int_equal(node->sink.bytes[0], 0);
    assert_int_equal(node->sink.bytes[2], 5);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
}

/* The size is sent once, with the first part. */
ENGINE_TEST(OPEN_ENGINE(.block = 2, .sizes = true, .round_bytes = 100),
            a_part_goes_on_with_its_size)
{
    static const char *const in[] = {"1=4 c", "1 CcC"}, *const on[] = {"0=4 c", "0 CcC"};

    for (int i = 0; i < 2; i++) {
        sends(node, MINUS, in[i]);
        expect(node, PLUS, on[i]);
        expect(node, PLUS, NULL);
    }
}

/* Blocks of one size in segments: segments without bytes are not sent. Blocks of 300 bytes have one segment of 256
 * bytes, one of 44 and two empty ones. */
TEST(empty_blocks_are_not_sent)
{
    const struct how how = {
        .dims = "2m", .algorithm = "stream", .rank = 1, .block = 300, .round_bytes = 300};
    static uint8_t body[BODY_MOST];
    char in[301] = {0};
    uint32_t length;

    for (int wrong = 0; wrong < 2; wrong++) {
        struct node *node = open_engine(&how);
        engine_admit(node->engine, 0);
        struct peer_message *head = next_data(node, MINUS, body, &length);
        assert_non_null(head);
        assert_int_equal(head->streamed_data.n_pieces, 2);
        assert_int_equal(head->streamed_data.pieces[0], 0);
        assert_int_equal(head->streamed_data.pieces[1], 1);
        assert_int_equal(head->streamed_data.n_sizes, 0);
        assert_int_equal(length, 300);
        for (uint32_t i = 0; i < length; i++)
            assert_int_equal(body[i], letter(1, 0, i));
        message_forget(head);
        expect(node, MINUS, NULL);
        if (wrong) {
            sends_bad(node, MINUS, "2 -", "");
            close_engine(node);
            continue;
        }
        for (uint32_t i = 0; i < 300; i++)
            in[i] = (char)letter(0, 1, i);
        struct frame frame = frame_of(MINUS, "0 1 -");
        frame.body = in;
        accepts(node, &frame);
        assert_int_equal(node->engine->rounds_finished, 1);
        assert_int_equal(node->engine->counts.blocks_delivered, 1);
        assert_int_equal(node->sink.bytes[0], 300);
        close_engine(node);
    }
}

ENGINE_TEST(OPEN_ENGINE(.block = 0, .round_bytes = 1), blocks_of_nothing_are_an_exchange)
{
    assert_int_equal(node->engine->rounds_finished, 0);
    engine_admit(node->engine, 0);
    expect(node, PLUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.writes[0], 1); /* a file may have to be made of it */
    assert_int_equal(node->sink.writes[2], 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
}

/* More pieces than one frame names; all of them come in in one. */
TEST(a_frame_names_a_bounded_number_of_pieces)
{
    const struct how how = {
        .dims = "130m", .algorithm = "stream", .rank = 0, .sizes = true, .round_bytes = 100};
    const struct how next = {
        .dims = "130m", .algorithm = "stream", .rank = 1, .sizes = true, .round_bytes = 100};
    static uint8_t body[BODY_MOST];
    uint32_t all[PIECES], none[PIECES] = {0}, length, seen = 0;
    struct node *node = open_engine(&how);
    struct peer_message told = {.kind = PEER_STREAMED_DATA};
    struct peer_streamed_data *data = &told.streamed_data;
    struct peer_message *head;

    engine_admit(node->engine, 0);
    while ((head = next_data(node, PLUS, body, &length)) != NULL) {
        assert_in_range(head->streamed_data.n_pieces, 1, 512);
        assert_int_equal(head->streamed_data.n_sizes, head->streamed_data.n_pieces);
        assert_int_equal(length, 0);
        for (size_t i = 0; i < head->streamed_data.n_pieces; i++)
            all[seen++] = head->streamed_data.pieces[i];
        message_forget(head);
    }
    assert_int_equal(seen, 129 * 4);
    for (uint32_t i = 0; i < seen; i++) /* by destination, the farthest first */
        assert_int_equal(all[i] / 4, 128 - i / 4);
    close_engine(node);

    node = open_engine(&next);
    data->exchange = HANDLE;
    data->n_pieces = data->n_sizes = seen;
    data->pieces = all;
    data->sizes = none;
    send_head(node, MINUS, &told, "");
    if (node->f.up[MINUS]->link == NULL)
        fail_msg("refused: %s", node->f.up[MINUS]->last);
    assert_int_equal(node->sink.writes[0], 4);
    for (seen = 0; (head = next_data(node, PLUS, body, &length)) != NULL;) {
        seen += (uint32_t)head->streamed_data.n_pieces;
        message_forget(head);
    }
    assert_int_equal(seen, 128 * 4);
    data->n_pieces = data->n_sizes =
        PIECES; /* the places of the rest are random, but none is new */
    for (uint32_t i = 129 * 4; i < PIECES; i++)
        all[i] = i % (129 * 4);
    send_head(node, MINUS, &told, "");
    assert_null(node->f.up[MINUS]->link);
    close_engine(node);
}

/* The streaming engine: frames that it must refuse. See streaming_fixture.h. */

struct refusal {
    const char *frame, *reason;
};

/* The frames are refused as the first frame, and also after a part of a piece has arrived. */
static void refuses(const struct how *how, unsigned port, const struct refusal *rows, size_t count)
{
    const char *first = how->sizes      ? port == MINUS ? "0=3 b" : "1=3 h"
                        : port == MINUS ? "0 b"
                                        : "1 h";

    for (size_t i = 0; i < 2 * count; i++) {
        struct node *node = begin_engine(how);
        node->sink.careless = true;
        if (i % 2 == 1)
            sends(node, port, first);
        sends_bad(node, port, rows[i / 2].frame, i % 2 == 0 ? rows[i / 2].reason : "");
        assert_int_equal(node->engine->rounds_finished, 0);
        close_engine(node);
    }
}

TEST(frames_that_name_the_wrong_pieces_are_refused)
{
    static const struct refusal rows[] = {
        {"s0 bBbBcCcC", "data of a step"},
        {"-", "a frame without pieces"},
        {"bBbBcCcC", "a frame without pieces"},
        {"2 1 bBbBcCcC", "piece 2 out of range: the channel has "},
        {"4294967295 1 bBbBcCcC", "piece 4294967295 out of range: the channel has "},
        {"0 1 7 bBbBcCcC",
         "piece 7 out of range: the channel has "}, /* behind two that are right */
        {"0 0 bBbBcCcC", "piece 0 arrived twice"},  /* twice in one frame */
        {"1 1 c", "3 bytes less than"},
        {"0 1 -", "the frame has none of its bytes"},
        {"0 1 bBb", "1 byte less than"}, /* a part of one that is not the last */
        {"1 0 cCcC", "the frame has none of its bytes"},
        {"0 -", "the frame has none of its bytes"},
        {"0 1 bBbBcCcCx", "1 byte more than"},
        {"0 bBbBcCcC", "4 bytes more than"},
        {"r1 0 1 bBbBcCcC", "data of round 1 "},
        {"r127 0 1 bBbBcCcC", "data of round 127 "},
        {"r128 0 1 bBbBcCcC", "data of round 128 "},
        {"r4294967295 0 1 bBbBcCcC", "data of round 4294967295"},
    };
    static const struct refusal from_plus = {"0 1 gGgGhHhHh", "1 byte more than"},
                                behind = {"r2 0 1 bBbBcCcC", "data of round 2 "};
    const struct how two = {.block = 8, .round_bytes = 4, .window = 2};

    refuses(&whole, MINUS, rows, sizeof rows / sizeof *rows);
    refuses(&whole, PLUS, &from_plus, 1);
    refuses(&two, MINUS, &behind, 1); /* behind the window */
}

TEST(sizes_that_cannot_be_are_refused)
{
    static const struct refusal rows[] = {
        {FROM_0, "piece 0 without a size"},
        {"0=4 1 bBbBcCcC", "piece 1 without a size"},
        {"0=4 1=4 =4 bBbBcCcC", "1 size more than"},
        {"0=4 1=5 bBbBcCcC", "a piece of 5 bytes"},
        {"0=4294967295 1=0 bBbBcCcC", "a piece of 4294967295 bytes"},
        {"0=4 -", "the frame has none of its bytes"},
        {"0=0 0=0 -", "piece 0 arrived twice"}, /* twice, and without a byte */
    };
    static const struct refusal of_one_size = {"0=4 1 bBbBcCcC", "1 size more than"};
    const struct how sizes = {.block = 4, .sizes = true, .round_bytes = 4};

    refuses(&whole, MINUS, &of_one_size, 1); /* blocks of one size do not say it */
    refuses(&sizes, MINUS, rows, sizeof rows / sizeof *rows);
}

/* A frame of a piece that has arrived completely is refused, although the same frame was right the first time. */
TEST(a_piece_comes_once)
{
    const struct how sizes = {.block = 4, .sizes = true, .round_bytes = 4};

    for (int uniform = 0; uniform < 2; uniform++)
        for (uint32_t piece = 0; piece < 2; piece++) {
            struct node *node = open_engine(uniform ? &whole : &sizes);
            engine_admit(node->engine, 0);
            sends(node, MINUS, uniform ? FROM_0 : "0=0 1=4 cCcC");
            sends_bad(node, MINUS, piece == 0 ? "0 -" : "1 c", "arrived twice");
            assert_true(piece != 0 || node->sink.writes[0] >= 1);
            if (!uniform)
                assert_int_equal(node->sink.writes[0], 1);
            close_engine(node);
        }
}

TEST(a_piece_does_not_come_in_short_frames)
{
    const struct how long_blocks = {.block = BLOCK_MOST};

    for (uint32_t piece = 0; piece < 2; piece++) {
        const struct frame short_frame = frame_of(MINUS, piece == 0 ? "0 x" : "1 x");
        struct node *node = open_engine(&long_blocks);
        unsigned sent = 0;
        node->sink.careless = true;
        engine_admit(node->engine, 0);
        for (; node->f.up[MINUS]->link != NULL && sent < 1000; sent++)
            send_frame(node, &short_frame);
        assert_in_range(sent, 10, 100);
        assert_contains(node->f.up[MINUS]->last, "bytes each from the middle of pieces");
        close_engine(node);
    }
}

ENGINE_TEST(open_engine(&whole), clears_are_refused)
{
    const struct peer_clear clear = {0};
    struct error e;

    assert_fails(engine_clear(node->engine, PLUS, &clear, &e), e, ERROR_PROTOCOL, "");
}
