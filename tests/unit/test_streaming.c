/* The streaming engine: which pieces it moves, and when. See streaming_fixture.h. */
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

enum { PIECES = 700 };

ENGINE_TEST(a_round_without_steps)
{
    struct node *node = open_engine(&whole);
    const struct engine_counts *counts = &node->engine->counts;

    expect_frame(node, PLUS, NULL); /* not admitted */
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &own_to_2);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &own_to_0);
    assert_int_equal(node->sink.bytes[1], 4); /* our own for ourselves */
    accepts(node, &from_0);
    assert_int_equal(node->sink.bytes[0], 4);
    expect_frame(node, PLUS, &on_to_2);
    accepts(node, &from_2);
    assert_int_equal(node->engine->rounds_finished, 0); /* something is still to be sent on */
    expect_frame(node, MINUS, &on_to_0);
    assert_int_equal(node->engine->rounds_finished, 1);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, NULL);
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

ENGINE_TEST(waiting_blocks_leave_together)
{
    const struct frame both = {.streamed = true, .pieces = 2, .piece = {0, 1}, .body = "cCcCfFfF"};
    struct node *node = open_engine(&whole);

    accepts(node, &from_0);
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &both);
    expect_frame(node, PLUS, NULL);
}

/* A neighbour may hear of a round earlier: blocks for other nodes are passed on, our own wait. */
ENGINE_TEST(neighbours_may_be_ahead)
{
    struct node *node = open_engine(&whole);

    accepts(node, &from_0);
    accepts(node, &from_2);
    expect_frame(node, PLUS, &on_to_2);
    expect_frame(node, PLUS, NULL);
    expect_frame(node, MINUS, &on_to_0);
    expect_frame(node, MINUS, NULL);
    assert_int_equal(node->engine->rounds_finished, 0);
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &own_to_2);
    expect_frame(node, MINUS, &own_to_0);
    assert_int_equal(node->engine->rounds_finished, 1);
}

TEST(the_farthest_leave_first)
{
    const struct how how = {.dims = "4m", .rank = 0, .block = 4};
    const struct frame out = {
        .streamed = true, .pieces = 3, .piece = {2, 1, 0}, .body = "dDdDcCcCbBbB"};
    const struct how next = {.dims = "4m", .rank = 1, .block = 4};
    struct node *node = open_engine(&how);

    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, &out);
    close_engine(node);

    /* Node 1: the blocks 0->2 0->3 1->2 1->3 leave by + in this order. */
    node = open_engine(&next);
    assert_int_equal(passages.departures[PLUS], 4);
    const struct frame far = {
        .streamed = true, .port = MINUS, .pieces = 1, .piece = {2}, .body = "dDdD"};
    const struct frame near = {
        .streamed = true, .port = MINUS, .pieces = 1, .piece = {1}, .body = "cCcC"};
    const struct frame all = {
        .streamed = true, .pieces = 4, .piece = {3, 1, 2, 0}, .body = "gGgGdDdDfFfFcCcC"};
    engine_admit(node->engine, 0);
    accepts(node, &near);
    accepts(node, &far);
    expect_frame(node, PLUS, &all);
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
            expect_frame(node, PLUS, NULL);
            continue;
        }
        const struct frame on = {.streamed = true,
                                 .pieces = 1,
                                 .piece = {0},
                                 .sizes = how->sizes && out == 0,
                                 .size = {4},
                                 .body = body + (cut[i] < 4) * (4 - cut[i])};
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

ENGINE_TEST(several_rounds_are_under_way)
{
    const struct how how = {.block = 8, .round_bytes = 3, .window = 2}; /* 3 + 3 + 2 bytes */
    const struct frame to_0[] = {
        {.streamed = true, .pieces = 2, .piece = {0, 1}, .body = "dDdgGg"},
        {.streamed = true, .round = 1, .pieces = 2, .piece = {0, 1}, .body = "DdDGgG"}};
    const struct frame first[] = {in_round(&from_2, 0, "gGghHh"), in_round(&from_0, 0, "bBbcCc"),
                                  in_round(&own_to_2, 0, "fFf"), in_round(&on_to_2, 0, "cCc")};
    const struct frame second[] = {in_round(&from_2, 1, "GgGHhH"), in_round(&from_0, 1, "BbBCcC"),
                                   in_round(&own_to_2, 1, "FfF"), in_round(&on_to_2, 1, "CcC")};
    struct node *node = begin_engine(&how);

    engine_admit(node->engine, 1);
    accepts(node, &first[0]); /* one neighbour is ahead of the other */
    accepts(node, &second[0]);
    expect_frame(node, MINUS, &to_0[0]); /* the oldest round first */
    expect_frame(node, MINUS, &to_0[1]);
    expect_frame(node, MINUS, NULL);
    expect_frame(node, PLUS, &first[2]);
    expect_frame(node, PLUS, &second[2]);
    assert_int_equal(node->engine->rounds_finished, 0);
    accepts(node, &first[1]);
    accepts(node, &second[1]);
    expect_frame(node, PLUS, &first[3]);
    assert_int_equal(node->engine->rounds_finished, 1);
    expect_frame(node, PLUS, &second[3]);
    assert_int_equal(node->engine->rounds_finished, 2);
}

ENGINE_TEST(rounds_follow_each_other)
{
    static const char *const bodies[][6] = {
        {"dDd", "fFf", "bBbcCc", "cCc", "gGghHh", "gGg"},
        {"DdD", "FfF", "BbBCcC", "CcC", "GgGHhH", "GgG"},
        {"dD", "fF", "bBcC", "cC", "gGhH", "gG"},
    };
    const struct how how = {.block = 8, .round_bytes = 3, .window = 2};
    struct node *node = begin_engine(&how);

    for (uint32_t round = 0; round < 3; round++) {
        const struct frame frame[] = {
            in_round(&own_to_0, round, bodies[round][0]),
            in_round(&own_to_2, round, bodies[round][1]),
            in_round(&from_0, round, bodies[round][2]),
            in_round(&on_to_2, round, bodies[round][3]),
            in_round(&from_2, round, bodies[round][4]),
            in_round(&on_to_0, round, bodies[round][5]),
        };
        if (round < 2)
            engine_admit(node->engine, round + 1);
        expect_frame(node, MINUS, &frame[0]);
        expect_frame(node, PLUS, &frame[1]);
        accepts(node, &frame[2]);
        expect_frame(node, PLUS, &frame[3]);
        accepts(node, &frame[4]);
        assert_int_equal(node->engine->rounds_finished, round);
        expect_frame(node, MINUS, &frame[5]);
        assert_int_equal(node->engine->rounds_finished, round + 1);
        assert_int_equal(node->engine->counts.blocks_delivered, 2);
    }
    expect_frame(node, MINUS, NULL);
    for (uint32_t origin = 0; origin < 3; origin++)
        assert_int_equal(node->sink.bytes[origin], 8);
    assert_int_equal(node->engine->counts.bytes_delivered, 16);
    assert_int_equal(node->engine->counts.port[PLUS].tx_blocks, 6);
}

/* Rounds are counted on: rounds of the second repetition read and write the blocks again. */
ENGINE_TEST(repetitions_count_their_rounds_on)
{
    const struct how how = {.block = 4, .round_bytes = 3, .window = 2};
    struct node *node = open_engine(&how);

    node->engine->rounds = 2;
    for (uint32_t round = 0; round < 4; round++) {
        if (round == 2) {
            memset(node->source.read, 0, sizeof node->source.read);
            memset(node->sink.got, 0, sizeof node->sink.got);
        }
        const struct frame in[] = {
            in_round(&from_0, round, round % 2 == 0 ? "bBbcCc" : "BC"),
            in_round(&from_2, round, round % 2 == 0 ? "gGghHh" : "GH"),
        };
        const struct frame out[] = {
            {.streamed = true,
             .round = round,
             .pieces = 2,
             .piece = {0, 1},
             .body = round % 2 == 0 ? "cCcfFf" : "CF"},
            {.streamed = true,
             .round = round,
             .pieces = 2,
             .piece = {1, 0},
             .body = round % 2 == 0 ? "gGgdDd" : "GD"},
        };
        accepts(node, &in[0]); /* before it is admitted */
        accepts(node, &in[1]);
        engine_admit(node->engine, round);
        expect_frame(node, PLUS, &out[0]);
        expect_frame(node, MINUS, &out[1]);
        assert_int_equal(node->engine->rounds_finished, round + 1);
    }
}

ENGINE_TEST(sizes_travel_along)
{
    const struct how how = {.block = 2, .sizes = true, .round_bytes = 100};
    const struct frame in = {.streamed = true,
                             .port = MINUS,
                             .pieces = 2,
                             .piece = {0, 1},
                             .sizes = 2,
                             .size = {0, 3},
                             .body = "cCc"};
    const struct frame part = {.streamed = true,
                               .port = PLUS,
                               .pieces = 1,
                               .piece = {1},
                               .sizes = 1,
                               .size = {5},
                               .body = "hH"};
    const struct frame rest = {.streamed = true,
                               .port = PLUS,
                               .pieces = 2,
                               .piece = {1, 0},
                               .sizes = 1,
                               .size = {0},
                               .body = "hHh"};
    const struct frame out = {.streamed = true,
                              .pieces = 2,
                              .piece = {1, 0},
                              .sizes = 2,
                              .size = {2, 3},
                              .body = "fFcCc"};
    const struct frame back = {
        .streamed = true, .pieces = 2, .piece = {0, 1}, .sizes = 2, .size = {0, 0}, .body = ""};
    struct node *node = open_engine(&how);

    node->source.size[0] = 0;
    engine_admit(node->engine, 0);
    accepts(node, &in);
    expect_frame(node, PLUS, &out);
    accepts(node, &part);
    accepts(node, &rest);
    expect_frame(node, MINUS, &back); /* a block without bytes is a block */
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->sink.writes[0], 1);
    assert_int_equal(node->sink.bytes[0], 0);
    assert_int_equal(node->sink.bytes[2], 5);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
}

/* The size is sent once, with the first part. */
ENGINE_TEST(a_part_goes_on_with_its_size)
{
    const struct how how = {.block = 2, .sizes = true, .round_bytes = 100};
    const struct frame in[] = {
        {.streamed = true,
         .port = MINUS,
         .pieces = 1,
         .piece = {1},
         .sizes = 1,
         .size = {4},
         .body = "c"},
        {.streamed = true, .port = MINUS, .pieces = 1, .piece = {1}, .body = "CcC"}};
    const struct frame on[] = {
        {.streamed = true, .pieces = 1, .piece = {0}, .sizes = 1, .size = {4}, .body = "c"},
        {.streamed = true, .pieces = 1, .piece = {0}, .body = "CcC"}};
    struct node *node = open_engine(&how);

    for (int i = 0; i < 2; i++) {
        accepts(node, &in[i]);
        expect_frame(node, PLUS, &on[i]);
        expect_frame(node, PLUS, NULL);
    }
}

/* Blocks of one size in segments: segments without bytes are not sent. Blocks of 300 bytes have one segment of 256
 * bytes, one of 44 and two empty ones. */
TEST(empty_blocks_are_not_sent)
{
    const struct how how = {
        .dims = "2m", .algorithm = "stream", .rank = 1, .block = 300, .round_bytes = 300};
    const struct frame empty = {
        .streamed = true, .port = MINUS, .pieces = 1, .piece = {2}, .body = ""};
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
        expect_frame(node, MINUS, NULL);
        if (wrong) {
            send_frame(node, &empty);
            assert_null(node->f.up[MINUS]->link);
            close_engine(node);
            continue;
        }
        for (uint32_t i = 0; i < 300; i++)
            in[i] = (char)letter(0, 1, i);
        const struct frame frame = {
            .streamed = true, .port = MINUS, .pieces = 2, .piece = {0, 1}, .body = in};
        accepts(node, &frame);
        assert_int_equal(node->engine->rounds_finished, 1);
        assert_int_equal(node->engine->counts.blocks_delivered, 1);
        assert_int_equal(node->sink.bytes[0], 300);
        close_engine(node);
    }
}

ENGINE_TEST(blocks_of_nothing_are_an_exchange)
{
    const struct how how = {.block = 0, .round_bytes = 1};
    struct node *node = open_engine(&how);

    assert_int_equal(node->engine->rounds_finished, 0);
    engine_admit(node->engine, 0);
    expect_frame(node, PLUS, NULL);
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

/* The frame is refused as the first frame, and also after a part of a piece has arrived. */
static void refuses(const struct how *how, const struct frame *bad, const char *text)
{
    for (int half = 0; half < 2; half++) {
        struct node *node = open_engine(how);
        struct frame first = {.streamed = true, .port = bad->port, .pieces = 1, .body = "b"};
        uint32_t place = bad->port == MINUS ? 0 : 1; /* for us */
        first.piece[0] = place;
        first.body = bad->port == MINUS ? "b" : "h";
        if (how->sizes) {
            first.sizes = 1;
            first.size[0] = 3;
        }
        engine_admit(node->engine, 0);
        node->sink.careless = true;
        if (half == 1)
            accepts(node, &first);
        send_frame(node, bad);
        assert_null(node->f.up[bad->port]->link);
        if (half == 0 && strstr(node->f.up[bad->port]->last, text) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", text, node->f.up[bad->port]->last);
        assert_null(engine_failed(node->engine)); /* the peer's fault, not ours */
        assert_int_equal(node->engine->rounds_finished, 0);
        close_engine(node);
    }
}

TEST(frames_that_name_the_wrong_pieces_are_refused)
{
    const struct how two = {.block = 8, .round_bytes = 4, .window = 2};
    struct frame bad;

    bad = from_0, bad.streamed = false;
    refuses(&whole, &bad, "data of a step");
    bad = from_0, bad.pieces = 0, bad.body = "";
    refuses(&whole, &bad, "a frame without pieces");
    bad = from_0, bad.pieces = 0;
    refuses(&whole, &bad, "a frame without pieces");
    bad = from_0, bad.piece[0] = 2;
    refuses(&whole, &bad, "no piece 2: this channel has ");
    bad = from_0, bad.piece[0] = UINT32_MAX;
    refuses(&whole, &bad, "no piece 4294967295: this channel has ");
    bad = from_0, bad.pieces = 3, bad.piece[2] = 7; /* behind two that are right */
    refuses(&whole, &bad, "no piece 7: this channel has ");
    bad = from_0, bad.piece[1] = 0; /* twice in one frame */
    refuses(&whole, &bad, "piece 0 has arrived");
    bad = from_0, bad.piece[0] = 1, bad.piece[1] = 1, bad.body = "c";
    refuses(&whole, &bad, "3 bytes less than");
    bad = from_0, bad.body = "";
    refuses(&whole, &bad, "the frame has no byte of it");
    bad = from_0, bad.body = "bBb"; /* a part of one that is not the last */
    refuses(&whole, &bad, "1 byte less than");
    bad = from_0, bad.piece[0] = 1, bad.piece[1] = 0, bad.body = "cCcC";
    refuses(&whole, &bad, "the frame has no byte of it");
    bad = from_0, bad.pieces = 1, bad.body = "";
    refuses(&whole, &bad, "the frame has no byte of it");
    bad = from_0, bad.body = "bBbBcCcCx";
    refuses(&whole, &bad, "1 byte more than");
    bad = from_0, bad.pieces = 1;
    refuses(&whole, &bad, "4 bytes more than");
    bad = from_2, bad.body = "gGgGhHhHh";
    refuses(&whole, &bad, "1 byte more than");
    bad = from_0, bad.round = 1;
    refuses(&whole, &bad, "data of round 1 ");
    bad = from_0, bad.round = 127;
    refuses(&whole, &bad, "data of round 127 ");
    bad = from_0, bad.round = 128;
    refuses(&whole, &bad, "data of round 128 ");
    bad = from_0, bad.round = UINT32_MAX;
    refuses(&whole, &bad, "data of round 4294967295");
    bad = from_0, bad.round = 2; /* behind the window */
    refuses(&two, &bad, "data of round 2 ");
}

TEST(sizes_that_cannot_be_are_refused)
{
    const struct how sizes = {.block = 4, .sizes = true, .round_bytes = 4};
    struct frame bad;

    bad = from_0, bad.sizes = 1, bad.size[0] = 4; /* blocks of one size do not say it */
    refuses(&whole, &bad, "1 size more than");
    bad = from_0;
    refuses(&sizes, &bad, "piece 0 without a size");
    bad = from_0, bad.sizes = 1, bad.size[0] = 4;
    refuses(&sizes, &bad, "piece 1 without a size");
    bad = from_0, bad.sizes = 3, bad.size[0] = bad.size[1] = bad.size[2] = 4;
    refuses(&sizes, &bad, "1 size more than");
    bad = from_0, bad.sizes = 2, bad.size[0] = 4, bad.size[1] = 5;
    refuses(&sizes, &bad, "a piece of 5 bytes");
    bad = from_0, bad.sizes = 2, bad.size[0] = UINT32_MAX;
    refuses(&sizes, &bad, "a piece of 4294967295 bytes");
    bad = from_0, bad.pieces = 1, bad.sizes = 1, bad.size[0] = 4, bad.body = "";
    refuses(&sizes, &bad, "the frame has no byte of it");
    bad = from_0, bad.sizes = 2; /* twice, and without a byte */
    bad.piece[1] = 0, bad.body = "";
    refuses(&sizes, &bad, "piece 0 has arrived");
}

/* Beyond the piece, and again: each of these frames is right once. */
TEST(a_piece_comes_once)
{
    const struct how sizes = {.block = 4, .sizes = true, .round_bytes = 4};
    static const struct frame with_sizes = {.streamed = true,
                                            .port = MINUS,
                                            .pieces = 2,
                                            .piece = {0, 1},
                                            .sizes = 2,
                                            .size = {0, 4},
                                            .body = "cCcC"};

    for (int uniform = 0; uniform < 2; uniform++)
        for (uint32_t piece = 0; piece < 2; piece++) {
            struct node *node = open_engine(uniform ? &whole : &sizes);
            const struct frame *first = uniform ? &from_0 : &with_sizes;
            struct frame again = {
                .streamed = true, .port = MINUS, .pieces = 1, .piece = {piece}, .body = "c"};
            uint32_t rank = piece == 0 ? 0 : 2;
            engine_admit(node->engine, 0);
            accepts(node, first);
            if (piece == 0)
                again.body = "";
            send_frame(node, &again);
            assert_null(node->f.up[MINUS]->link);
            assert_contains(node->f.up[MINUS]->last, "has arrived before");
            assert_true(rank != 0 || node->sink.writes[0] >= 1);
            if (!uniform)
                assert_int_equal(node->sink.writes[0], 1);
            close_engine(node);
        }
}

TEST(a_piece_does_not_come_in_short_frames)
{
    const struct how long_blocks = {.block = BLOCK_MOST};

    for (uint32_t piece = 0; piece < 2; piece++) {
        const struct frame short_frame = {
            .streamed = true, .port = MINUS, .pieces = 1, .piece = {piece}, .body = "x"};
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

ENGINE_TEST(clears_are_refused)
{
    struct node *node = open_engine(&whole);
    const struct peer_clear clear = {0};
    struct error e;

    assert_fails(engine_clear(node->engine, PLUS, &clear, &e), e, ERROR_PROTOCOL, "");
}
