/* The streaming engine: frames that it must refuse. See streaming_fixture.h. */
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

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
            assert_non_null(strstr(node->f.up[MINUS]->last, "has arrived before"));
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
        assert_non_null(strstr(node->f.up[MINUS]->last, "bytes each from the middle of pieces"));
        close_engine(node);
    }
}

TEST(clears_are_refused)
{
    struct node *node = open_engine(&whole);
    const struct peer_clear clear = {0};
    struct error e;

    assert_int_equal(engine_clear(node->engine, PLUS, &clear, &e), -1);
    assert_int_equal(e.code, ERROR_PROTOCOL);
    close_engine(node);
}
