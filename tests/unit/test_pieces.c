/* Pieces with digests in the streaming engine, at node 1 of a mesh of three (streaming_fixture.h), where some blocks of
 * neighbours pass through and some stay. */
#include "daemon/torusd/engine/stepped.h"
#include "engine_fixture.h"
#include "failing_memory.h"
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

enum { LONG = 300, FALSE_DIGEST = 12345 };

/* Pieces 0->1 and 0->2 of `size` bytes each. Writes their bytes to `body`. */
static struct frame pieces_from_0(char body[2 * LONG + 1], uint32_t size)
{
    struct frame frame = frame_of(MINUS, "0=0 1=0 -");

    frame.size[0] = frame.size[1] = size;
    frame.digests = size >= PIECE_DIGEST_LEAST ? 2 : 0;
    frame.body = body;
    frame.digest[0] = letters(body, 0, 1, 0, size);
    frame.digest[1] = letters(body + size, 0, 2, 0, size);
    return frame;
}

/* A frame with one digest and a body of LONG bytes, which is not in the text. */
static struct frame with_digest(unsigned port, const char *text, uint64_t digest, const char *body)
{
    struct frame frame = frame_of(port, text);

    frame.digests = 1;
    frame.digest[0] = digest;
    frame.body = body;
    return frame;
}

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

ENGINE_TEST(open_engine(&files), relayed_pieces_keep_their_digest)
{
    char in[2 * LONG + 1], own[LONG + 1];
    struct frame from = pieces_from_0(in, LONG);
    const struct frame on = with_digest(PLUS, "0=300 -", FALSE_DIGEST, in + LONG);
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

ENGINE_TEST(open_engine(&files), small_pieces_have_none)
{
    char in[2 * LONG + 1];
    const struct frame from = pieces_from_0(in, PIECE_DIGEST_LEAST - 1);
    struct frame on = frame_of(PLUS, "0=255 -");

    on.body = in + PIECE_DIGEST_LEAST - 1;

    accepts(node, &from);
    expect_frame(node, PLUS, &on);
    assert_int_equal(node->engine->delivered_digest, from.digest[0]); /* in the sum anyway */
    tell_all(node);
    assert_int_equal(told[0], 0); /* which is compared at the end */
}

/* The engine has failed, by damage to the block from node 0. */
static void check_damaged(const struct node *node)
{
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
    assert_contains(engine_failed(node->engine)->text, "from node 0 to node 1");
    assert_contains(engine_failed(node->engine)->text, "bytes 0 to 299");
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
        check_damaged(node);
        assert_int_equal(node->engine->rounds_finished, 0);
        tell_all(node);
        assert_int_equal(told[0], 0);
        expect(node, PLUS, NULL); /* nothing is sent after a failure */
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
    assert_contains(engine_failed(node->engine)->text, "bytes 0 to 299");
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
ENGINE_TEST(open_engine(&files_repaired), a_damaged_piece_is_waited_for)
{
    const struct engine_damaged *damaged;
    char in[2 * LONG + 1], back[2 * LONG + 1];
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
}

/* That many damages are not random. */
ENGINE_TEST(open_engine(&files_repaired), too_many_damaged_pieces_fail_the_engine)
{
    char in[2 * LONG + 1];
    struct frame from = pieces_from_0(in, LONG);

    node->sink.careless = true;
    node->engine->damaged_count = ENGINE_DAMAGED_MOST;
    in[9] ^= 1;
    accepts(node, &from);
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
}

static void refuses(struct frame *bad, const char *text)
{
    struct node *node = open_engine(&files);

    node->sink.careless = true;
    refused(node, bad, text);
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
ENGINE_TEST(open_engine(&gathered), a_block_for_all_keeps_its_digest)
{
    char in[LONG + 1] = "", own[LONG + 1];
    struct frame from = with_digest(MINUS, "0=300 -", 0, in);
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
    check_damaged(node);
    expect(node, PLUS, NULL);
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

/* Pieces with digests in the stepped engine, with a plan made by hand: 0->2 is stored and sent on, 2->0 is relayed, and
 * 0->1 stays. */

static struct node *open_stepped(bool repairs)
{
    struct node *node = node_open("3", 1, LONG);
    struct error e;

    node->setup.uniform = false;
    node->setup.digests = true;
    node->setup.repairs = repairs;
    node->setup.round_bytes = 1000;
    node->engine = stepped_new(&node->setup, &engine_fixture_plan, &e);
    assert_non_null(node->engine);
    node_connect(node);
    return node;
}

static struct frame stepped_from_0(char body[2 * LONG + 1])
{
    struct frame frame = pieces_from_0(body, LONG);

    frame.streamed = false;
    frame.hops = 1;
    return frame;
}

TEST(relayed_pieces_keep_their_digest_in_steps)
{
    char in[2 * LONG + 1], passing[LONG + 1], own[LONG + 1];
    struct node *node = open_stepped(false);
    struct frame from = stepped_from_0(in);
    const struct frame on = with_digest(PLUS, "s1 h1 =300 -", FALSE_DIGEST, in + LONG);
    const struct frame relayed = with_digest(PLUS, "h2 l1 =300 -", FALSE_DIGEST, passing);
    struct frame relayed_on = relayed;
    struct frame mine = on;

    from.digest[1] = FALSE_DIGEST; /* a relay does not check it */
    (void)letters(passing, 2, 0, 0, LONG);
    engine_admit(node->engine, 0);
    mine.step = 0;
    mine.digest[0] = letters(own, 1, 2, 0, LONG);
    mine.body = own;
    expect_frame(node, PLUS, &mine);
    accepts(node, &relayed);
    relayed_on.left = 0;
    expect_frame(node, MINUS, &relayed_on);
    accepts(node, &from);
    assert_null(engine_failed(node->engine));
    expect_frame(node, PLUS, &on);
    assert_int_equal(node->engine->delivered_digest, from.digest[0]);
    assert_int_equal(node->engine->sent_digest, mine.digest[0]);
    node_close(node);
}

TEST(a_damaged_piece_is_named_in_steps)
{
    for (uint32_t cut = 1; cut <= 2 * LONG; cut += 59) {
        char in[2 * LONG + 1], part[2 * LONG + 1] = {0};
        struct node *node = open_stepped(false);
        struct frame from = stepped_from_0(in), second = from;
        in[7] ^= 2;
        memcpy(part, in, cut);
        from.body = part;
        from.sizes = cut < LONG ? 1 : 2;
        from.digests = cut < LONG ? 0 : cut < 2 * LONG ? 1 : 2;
        second.body = in + cut;
        second.sizes = 2 - from.sizes;
        second.size[0] = LONG;
        second.digests = 2 - from.digests;
        if (from.digests == 1)
            second.digest[0] = second.digest[1];
        node->sink.careless = true;
        accepts(node, &from);
        if (cut < 2 * LONG)
            accepts(node, &second);
        check_damaged(node);
        node_close(node);
    }
}

TEST(a_damaged_piece_is_waited_for_in_steps)
{
    char in[2 * LONG + 1], passing[LONG + 1];
    struct node *node = open_stepped(true);
    struct frame from = stepped_from_0(in);
    const struct frame relayed = with_digest(PLUS, "h2 l1 =300 -", FALSE_DIGEST, passing);
    struct frame last = with_digest(PLUS, "s1 h1 =300 -", 0, passing);

    node->sink.careless = true;
    engine_admit(node->engine, 0);
    in[LONG - 1] ^= 1;
    accepts(node, &from);
    assert_int_equal(node->engine->damaged_count, 1);
    assert_int_equal(node->engine->damaged[0].piece.source, 0);
    assert_int_equal(node->engine->damaged[0].piece.length, LONG);
    (void)letters(passing, 2, 0, 0, LONG);
    accepts(node, &relayed);
    last.digest[0] = letters(passing, 2, 1, 0, LONG);
    accepts(node, &last);
    node_drain(node, PLUS);
    node_drain(node, MINUS);
    assert_int_equal(node->engine->rounds_finished, 0);
    node->engine->damaged_count = 0;
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 1);
    node_close(node);
}

TEST(digests_that_cannot_be_are_refused_in_steps)
{
    char in[2 * LONG + 1], passing[LONG + 1] = {0};
    const struct frame relayed = with_digest(PLUS, "h2 l1 =300 -", 0, passing);
    struct frame bad[4] = {stepped_from_0(in), stepped_from_0(in), relayed, relayed};

    (void)letters(passing, 2, 0, 0, LONG);
    for (unsigned i = 0; i < 4; i++) {
        struct node *node = open_stepped(false);
        bad[i].digests = (const size_t[]){1, 3, 0, 2}[i];
        refused(node, &bad[i],
                i % 2 == 0 ? "a block of 300 bytes without a digest" : "1 digest more than");
        node_close(node);
    }
}
