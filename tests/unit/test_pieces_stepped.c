/* Pieces with digests in the stepped engine, with a plan made by hand: 0->2 is stored and sent on, 2->0 is relayed, and
 * 0->1 stays. */
#include "daemon/torusd/engine/stepped.h"
#include "pieces_fixture.h"
#include "tests/support/cmocka.h"

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

TEST(relayed_pieces_keep_their_digest)
{
    char in[2 * LONG + 1], passing[LONG + 1], own[LONG + 1];
    struct node *node = open_stepped(false);
    struct frame from = stepped_from_0(in);
    struct frame on = {.step = 1,
                       .hops = 1,
                       .sizes = 1,
                       .size = {LONG},
                       .digests = 1,
                       .digest = {FALSE_DIGEST},
                       .body = in + LONG};
    struct frame relayed = {.port = PLUS,
                            .hops = 2,
                            .left = 1,
                            .sizes = 1,
                            .size = {LONG},
                            .digests = 1,
                            .digest = {FALSE_DIGEST},
                            .body = passing};
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

TEST(a_damaged_piece_is_named)
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
        assert_non_null(engine_failed(node->engine));
        assert_int_equal(engine_failed(node->engine)->code, ERROR_DAMAGED);
        assert_non_null(strstr(engine_failed(node->engine)->text, "from node 0 to node 1"));
        assert_non_null(strstr(engine_failed(node->engine)->text, "bytes 0 to 299"));
        node_close(node);
    }
}

TEST(a_damaged_piece_is_waited_for)
{
    char in[2 * LONG + 1], passing[LONG + 1];
    struct node *node = open_stepped(true);
    struct frame from = stepped_from_0(in);
    struct frame relayed = {.port = PLUS,
                            .hops = 2,
                            .left = 1,
                            .sizes = 1,
                            .size = {LONG},
                            .digests = 1,
                            .digest = {FALSE_DIGEST},
                            .body = passing};
    struct frame last = {
        .port = PLUS, .step = 1, .hops = 1, .sizes = 1, .size = {LONG}, .digests = 1};

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
    last.body = passing;
    accepts(node, &last);
    node_drain(node, PLUS);
    node_drain(node, MINUS);
    assert_int_equal(node->engine->rounds_finished, 0);
    node->engine->damaged_count = 0;
    engine_wake(node->engine);
    assert_int_equal(node->engine->rounds_finished, 1);
    node_close(node);
}

TEST(digests_that_cannot_be_are_refused)
{
    char in[2 * LONG + 1], passing[LONG + 1];
    struct frame bad[4] = {stepped_from_0(in),
                           stepped_from_0(in),
                           {.port = PLUS, .hops = 2, .left = 1, .sizes = 1, .size = {LONG}},
                           {.port = PLUS, .hops = 2, .left = 1, .sizes = 1, .size = {LONG}}};

    bad[0].digests = 1;
    bad[1].digests = 3;
    bad[2].digests = 0;
    bad[3].digests = 2;
    (void)letters(passing, 2, 0, 0, LONG);
    bad[2].body = bad[3].body = passing;
    for (int i = 0; i < 4; i++) {
        const char *text =
            i % 2 == 0 ? "a block of 300 bytes without a digest" : "1 digest more than";
        struct node *node = open_stepped(false);
        send_frame(node, &bad[i]);
        assert_null(node->f.up[bad[i].port]->link);
        if (strstr(node->f.up[bad[i].port]->last, text) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", text, node->f.up[bad[i].port]->last);
        node_close(node);
    }
}
