/* Pieces with digests in the streaming engine, at node 1 of a mesh of three (streaming_fixture.h), where some blocks of
 * neighbours pass through and some stay. */
#include "failing_memory.h"
#include "pieces_fixture.h"
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

static const struct how files = {
    .block = LONG, .sizes = true, .digests = true, .round_bytes = 1000};
static const struct how gathered = {.dims = "3m",
                                    .algorithm = "balanced",
                                    .rank = 1,
                                    .block = LONG,
                                    .sizes = true,
                                    .digests = true,
                                    .round_bytes = 1000};

static const struct how files_repaired = {
    .block = LONG, .sizes = true, .digests = true, .repairs = true, .round_bytes = 1000};

TEST(relayed_pieces_keep_their_digest)
{
    char in[2 * LONG + 1], own[LONG + 1];
    struct node *node = open_engine(&files);
    struct frame from = pieces_from_0(in, LONG);
    struct frame on = {.streamed = true,
                       .pieces = 1,
                       .sizes = 1,
                       .size = {LONG},
                       .digests = 1,
                       .digest = {FALSE_DIGEST},
                       .body = in + LONG};
    struct frame mine = on;

    from.digest[1] = FALSE_DIGEST; /* a relay does not look */
    accepts(node, &from);
    assert_null(engine_failed(node->engine));
    assert_int_equal(node->sink.bytes[0], LONG);
    assert_int_equal(node->engine->delivered_digest, from.digest[0]);
    expect_frame(node, PLUS, &on);
    engine_admit(node->engine, 0);
    mine.piece[0] = 1;
    mine.digest[0] = letters(own, 1, 2, 0, LONG);
    mine.body = own;
    expect_frame(node, PLUS, &mine);
    assert_int_equal(node->engine->sent_digest, mine.digest[0]);
    close_engine(node);
}

static uint64_t told[3];

static void tell(void *context, uint32_t origin, uint64_t begin, uint64_t end)
{
    assert_int_equal(begin, 0);
    told[origin] += end - begin;
}

static void tell_all(const struct node *node)
{
    memset(told, 0, sizeof told);
    node->engine->ops->arrived(node->engine, tell, NULL);
}

/* A digest arrives and leaves with the last byte of its piece. */
TEST(frames_may_be_cut_anywhere)
{
    for (uint32_t cut = 1; cut < 2 * LONG; cut += 13) {
        char all[2 * LONG + 1], part[2 * LONG + 1] = {0}, rest[LONG + 1];
        struct node *node = open_engine(&files);
        struct frame from = pieces_from_0(all, LONG), first = from, second = from;
        struct frame on = {.streamed = true, .pieces = 1, .body = rest};
        uint32_t gone = cut < LONG ? 0 : cut - LONG;
        memcpy(part, all, cut);
        first.body = part;
        second.body = all + cut;
        if (cut <= LONG) {
            first.pieces = first.sizes = 1;
            first.digests = cut == LONG;
            second.sizes = 1;
            second.pieces = cut == LONG ? 1 : 2;
            if (cut == LONG)
                second.piece[0] = 1, second.digests = 1, second.digest[0] = from.digest[1];
        } else {
            first.digests = 1;
            second.pieces = second.digests = 1;
            second.sizes = 0;
            second.piece[0] = 1;
            second.digest[0] = from.digest[1];
        }
        accepts(node, &first);
        tell_all(node);
        assert_int_equal(told[0], cut < LONG ? 0 : LONG); /* only pieces that were compared */
        if (gone > 0) {
            on.sizes = 1;
            on.size[0] = LONG;
            memcpy(rest, all + LONG, gone);
            rest[gone] = '\0';
            expect_frame(node, PLUS, &on);
            on.sizes = 0;
        } else {
            on.sizes = 1;
            on.size[0] = LONG;
        }
        accepts(node, &second);
        assert_null(engine_failed(node->engine));
        assert_int_equal(node->engine->delivered_digest, from.digest[0]);
        (void)strcpy(rest, all + LONG + gone);
        on.digests = 1;
        on.digest[0] = from.digest[1];
        expect_frame(node, PLUS, &on);
        close_engine(node);
    }
}

TEST(small_pieces_have_none)
{
    char in[2 * LONG + 1];
    struct node *node = open_engine(&files);
    const struct frame from = pieces_from_0(in, PIECE_DIGEST_LEAST - 1);
    const struct frame on = {.streamed = true,
                             .pieces = 1,
                             .sizes = 1,
                             .size = {PIECE_DIGEST_LEAST - 1},
                             .body = in + PIECE_DIGEST_LEAST - 1};

    accepts(node, &from);
    expect_frame(node, PLUS, &on);
    assert_int_equal(node->engine->delivered_digest, from.digest[0]); /* in the sum all the same */
    tell_all(node);
    assert_int_equal(told[0], 0); /* which is compared at the end */
    close_engine(node);
}

/* The piece may arrive in any frames. */
TEST(a_damaged_piece_is_named)
{
    for (uint32_t bit = 0; bit < 8 * LONG; bit += 7) {
        char in[2 * LONG + 1];
        struct node *node = open_engine(&files);
        struct frame from = pieces_from_0(in, LONG);
        in[bit / 8] = (char)(in[bit / 8] ^ 1 << bit % 8);
        if (in[bit / 8] == '\0')
            in[bit / 8] = 1; /* bodies are texts here */
        node->sink.careless = true;
        accepts(node, &from); /* the neighbour is not to blame */
        assert_non_null(engine_failed(node->engine));
        assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
        assert_non_null(strstr(engine_failed(node->engine)->text, "from node 0 to node 1"));
        assert_non_null(strstr(engine_failed(node->engine)->text, "bytes 0 to 299"));
        assert_int_equal(node->engine->rounds_finished, 0);
        tell_all(node);
        assert_int_equal(told[0], 0);
        expect_frame(node, PLUS, NULL); /* nothing is sent after a failure */
        close_engine(node);
    }
}

/* The sink knows the contents, as for generated blocks: pieces before the damage count. */
TEST(pieces_before_damage_count)
{
    const struct how how = {.block = LONG};
    char in[2 * LONG + 1];
    struct node *node = open_engine(&how);
    struct frame from = {.streamed = true, .port = PLUS, .pieces = 1, .piece = {1}, .body = in};

    (void)letters(in, 2, 1, 0, LONG);
    accepts(node, &from);
    from.port = MINUS;
    from.piece[0] = 0;
    (void)letters(in, 0, 1, 0, 200);
    accepts(node, &from);
    node->sink.damaged = true;
    (void)letters(in, 0, 1, 200, 50);
    accepts(node, &from);
    assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
    assert_non_null(strstr(engine_failed(node->engine)->text, "bytes 0 to 299"));
    node->sink.damaged = false;
    accepts(node, &from); /* too late */
    tell_all(node);
    assert_int_equal(told[0], 200);
    assert_int_equal(told[2], LONG);
    assert_int_equal(node->engine->counts.bytes_delivered, LONG + 200);
    close_engine(node);

    /* After another failure it is unknown how much the sink has taken. */
    node = open_engine(&how);
    accepts(node, &from);
    node->sink.failing = true;
    accepts(node, &from);
    tell_all(node);
    assert_int_equal(told[0], 0);
    close_engine(node);
}

/* A damaged piece that may be repaired holds up only its round. */
TEST(a_damaged_piece_is_waited_for)
{
    const struct engine_damaged *damaged;
    char in[2 * LONG + 1], back[2 * LONG + 1];
    struct node *node = open_engine(&files_repaired);
    struct frame from = pieces_from_0(in, LONG), other = from;

    node->sink.careless = true;
    engine_admit(node->engine, 0);
    in[9] ^= 1;
    accepts(node, &from);
    assert_null(engine_failed(node->engine));
    assert_int_equal(node->engine->damaged_count, 1);
    tell_all(node);
    assert_int_equal(told[0], 0);
    damaged = &node->engine->damaged[0];
    assert_int_equal(damaged->piece.source, 0);
    assert_int_equal(damaged->piece.destination, 1);
    assert_int_equal(damaged->piece.begin, 0);
    assert_int_equal(damaged->piece.length, LONG);
    assert_int_equal(damaged->digest, from.digest[0]);
    assert_true(damaged->arrived_digest != from.digest[0]);
    assert_int_equal(node->engine->delivered_digest, 0);
    other.port = PLUS;
    other.digest[0] = letters(back, 2, 0, 0, LONG);
    other.digest[1] = letters(back + LONG, 2, 1, 0, LONG);
    other.body = back;
    accepts(node, &other);
    node_drain(node, PLUS);
    node_drain(node, MINUS);
    assert_int_equal(node->engine->counts.blocks_delivered, 0);
    assert_int_equal(node->engine->rounds_finished, 0);
    node->engine->damaged_count = 0;
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 1);
    assert_int_equal(node->engine->counts.blocks_delivered, 2);
    close_engine(node);
}

/* So many damages are not random. */
TEST(too_many_damaged_pieces_fail_the_engine)
{
    char in[2 * LONG + 1];
    struct node *node = open_engine(&files_repaired);
    struct frame from = pieces_from_0(in, LONG);

    node->sink.careless = true;
    node->engine->damaged_count = ENGINE_DAMAGED_MOST;
    in[9] ^= 1;
    accepts(node, &from);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
    close_engine(node);
}

static void refuses(struct frame *bad, const char *text)
{
    struct node *node = open_engine(&files);

    node->sink.careless = true;
    send_frame(node, bad);
    assert_null(node->f.up[MINUS]->link);
    if (strstr(node->f.up[MINUS]->last, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, node->f.up[MINUS]->last);
    assert_null(engine_failed(node->engine));
    close_engine(node);
}

TEST(digests_that_cannot_be_are_refused)
{
    char in[2 * LONG + 1];
    struct frame from = pieces_from_0(in, LONG), bad;

    bad = from, bad.digests = 0;
    refuses(&bad, "piece 0 without a digest");
    bad = from, bad.digests = 1;
    refuses(&bad, "piece 1 without a digest");
    bad = from, bad.digests = 3;
    refuses(&bad, "1 digest more than");
    from = pieces_from_0(in, PIECE_DIGEST_LEAST - 1);
    bad = from, bad.digests = 1;
    refuses(&bad, "1 digest more than");
}

/* In an allgather the block of node 0 stays here and goes on; our own leaves by both ports. */
TEST(a_block_for_all_keeps_its_digest)
{
    char in[LONG + 1], own[LONG + 1];
    struct node *node = open_engine(&gathered);
    struct frame from = {.streamed = true,
                         .port = MINUS,
                         .pieces = 1,
                         .sizes = 1,
                         .size = {LONG},
                         .digests = 1,
                         .body = in};
    struct frame mine = from;
    struct block_piece piece = {0, 0, 0, LONG};
    struct piece_states none = {0};
    struct piece_mark mark = {0};
    const struct extent bytes = {.data = (const uint8_t *)in, .length = LONG};

    (void)letters(in, 0, 1, 0, LONG);
    assert_int_equal(piece_pass(&none, &mark, &piece, 0, &bytes), 0);
    from.digest[0] = mark.digest; /* of a block for all */
    accepts(node, &from);
    assert_null(engine_failed(node->engine));
    assert_int_equal(node->engine->delivered_digest, mark.digest);
    expect_frame(node, PLUS, &from);
    engine_admit(node->engine, 0);
    mine.digest[0] = letters(own, 1, 1, 0, LONG);
    mine.body = own;
    mine.piece[0] = 1;
    node->source.sleeps_soon = LONG; /* it gives 64 KiB at a time else */
    expect_frame(node, PLUS, &mine);
    mine.piece[0] = 0;
    expect_frame(node, MINUS, &mine);
    assert_int_equal(node->engine->sent_digest, 2 * mine.digest[0]); /* for two others */
    close_engine(node);

    node = open_engine(&gathered);
    node->sink.careless = true;
    in[77] ^= 1;
    accepts(node, &from);
    assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
    assert_non_null(strstr(engine_failed(node->engine)->text, "from node 0 to node 1"));
    assert_non_null(strstr(engine_failed(node->engine)->text, "bytes 0 to 299"));
    expect_frame(node, PLUS, NULL);
    close_engine(node);
}

TEST(memory_may_be_over)
{
    for (unsigned after = 0;; after++) {
        char in[2 * LONG + 1], part[2 * LONG + 1] = {0};
        struct node *node = open_engine(&files);
        struct frame first = pieces_from_0(in, LONG), second = first;
        memcpy(part, in, 100);
        first.body = part;
        first.pieces = first.sizes = 1;
        first.digests = 0;
        second.body = in + 100;
        second.sizes = 1;
        memory_fails(after);
        send_frame(node, &first);
        if (node->f.up[MINUS]->link != NULL)
            send_frame(node, &second);
        bool failed = memory_failed();
        if (!failed) {
            assert_null(engine_failed(node->engine));
            assert_int_equal(node->engine->delivered_digest, first.digest[0]);
            close_engine(node);
            return;
        }
        assert_true(node->f.up[MINUS]->link == NULL || engine_failed(node->engine) != NULL);
        if (engine_failed(node->engine) != NULL)
            assert_int_equal(engine_failed(node->engine)->code, ERROR_MEMORY);
        close_engine(node);
    }
}
