/* Where bytes of bodies belong in the memory of a sink: only those that this port is to deliver next. */
#include "streaming_fixture.h"
#include "tests/support/cmocka.h"

static uint8_t memory[NODES_MOST][BLOCK_MOST];

static uint8_t *memory_of(struct sink *base, uint32_t origin, uint64_t offset, uint32_t *room)
{
    const struct test_sink *s = (struct test_sink *)base;
    const uint64_t half = BLOCK_MOST / 2; /* it is in two parts */

    if (s->failing)
        return NULL;
    *room = (uint32_t)((offset < half ? half : BLOCK_MOST) - offset);
    return &memory[origin][offset];
}

/* At node 1 of a mesh of three, whose sink has memory. */
static struct node *begin(const struct how *how)
{
    static struct sink_ops ops;
    struct node *node = begin_engine(how);

    ops = *node->sink.base.ops;
    ops.memory = memory_of;
    node->sink.base.ops = &ops;
    return node;
}

/* The places of a frame with these pieces, from an offset of its body on. */
static struct places places_of(struct node *node, unsigned port, const char *text, uint32_t length,
                               uint32_t offset)
{
    const struct frame frame = frame_of(port, text);
    const struct peer_message message = {.kind = PEER_STREAMED_DATA,
                                         .streamed_data = {.exchange = HANDLE,
                                                           .round = frame.round,
                                                           .n_pieces = frame.pieces,
                                                           .n_sizes = frame.sizes,
                                                           .pieces = frame.piece,
                                                           .sizes = frame.size,
                                                           .n_digests = frame.digests,
                                                           .digests = frame.digest}};
    struct places places;

    engine_places(node->engine, port, &message, length, offset, &places);
    return places;
}

static void check_run(const struct places *p, unsigned i, const uint8_t *data, uint32_t length)
{
    assert_true(i < p->count);
    assert_ptr_equal(p->run[i].data, data);
    assert_int_equal(p->run[i].length, length);
}

ENGINE_TEST(begin(&whole), what_ends_here_has_a_place)
{
    struct places p = places_of(node, MINUS, "0 -", 4, 0);

    assert_int_equal(p.count, 1);
    check_run(&p, 0, memory[0], 4);
    p = places_of(node, MINUS, "0 -", 4, 3);
    check_run(&p, 0, memory[0] + 3, 1);
    assert_int_equal(places_of(node, MINUS, "0 -", 4, 4).count, 0);
    p = places_of(node, PLUS, "1 -", 4, 0);
    check_run(&p, 0, memory[2], 4);
    /* what is sent on has none, nor has what follows it */
    assert_int_equal(places_of(node, MINUS, "1 -", 4, 0).count, 0);
    p = places_of(node, MINUS, "0 1 -", 8, 2);
    assert_int_equal(p.count, 1);
    check_run(&p, 0, memory[0] + 2, 2);
    assert_int_equal(places_of(node, PLUS, "0 1 -", 8, 0).count, 0);
    p = places_of(node, PLUS, "0 1 -", 8, 4);
    check_run(&p, 0, memory[2], 4);
}

ENGINE_TEST(begin(&whole), bytes_that_have_arrived_have_none)
{
    struct places p;

    sends(node, MINUS, "0 bBb");
    p = places_of(node, MINUS, "0 -", 1, 0);
    assert_int_equal(p.count, 1);
    check_run(&p, 0, memory[0] + 3, 1);
    assert_int_equal(places_of(node, MINUS, "0 -", 2, 0).count, 0);
    sends(node, MINUS, "0 B");
    assert_int_equal(places_of(node, MINUS, "0 -", 1, 0).count, 0);
    assert_int_equal(places_of(node, MINUS, "0 -", 4, 0).count, 0);
}

ENGINE_TEST(begin(&whole), lies_have_none)
{
    assert_int_equal(places_of(node, MINUS, "0 -", 5, 0).count, 0); /* longer than the block */
    assert_int_equal(places_of(node, MINUS, "0 0 -", 8, 0).count, 0);
    assert_int_equal(places_of(node, MINUS, "0 0 -", 4, 0).count, 0);
    assert_int_equal(places_of(node, MINUS, "0 1 -", 3, 0).count, 0); /* without the second one */
    assert_int_equal(places_of(node, MINUS, "2 -", 4, 0).count, 0);
    assert_int_equal(places_of(node, MINUS, "-", 4, 0).count, 0);
    assert_int_equal(places_of(node, MINUS, "r1 0 -", 4, 0).count, 0); /* not under way */
    assert_int_equal(places_of(node, MINUS, "0=4 -", 4, 0).count, 0);  /* all know the size */
    node->sink.failing = true;
    assert_int_equal(places_of(node, MINUS, "0 -", 4, 0).count, 0);
}

ENGINE_TEST(begin(&(const struct how){.block = BLOCK_MOST, .digests = true}), digests_are_counted)
{
    const uint32_t half = BLOCK_MOST / 2;
    struct places p = places_of(node, MINUS, "0 -", BLOCK_MOST - 1, 0); /* does not end */

    assert_int_equal(p.count, 2);
    check_run(&p, 0, memory[0], half);
    check_run(&p, 1, memory[0] + half, half - 1);
    assert_int_equal(places_of(node, MINUS, "0 -", BLOCK_MOST, 0).count, 0);
}

ENGINE_TEST(begin(&whole), a_failed_engine_has_no_places)
{
    node->sink.failing = true;
    sends(node, MINUS, "0 b");
    node->sink.failing = false;
    assert_non_null(engine_failed(node->engine));
    assert_int_equal(places_of(node, MINUS, "0 -", 3, 0).count, 0);
}
