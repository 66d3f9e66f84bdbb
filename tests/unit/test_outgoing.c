#include "daemon/torusd/router/outgoing.h"
#include "message_bytes.h"
#include "tests/support/cmocka.h"

static void check_head(const struct outgoing *frame, const char *reason)
{
    struct frame_prefix prefix;

    assert_int_equal(frame_prefix_read(frame->head, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL),
                     0);
    assert_int_equal(prefix.head + FRAME_PREFIX_SIZE, frame->head_length);
    assert_int_equal(prefix.body, frame->body_length);
    struct peer_message *head = message_read(frame->head + FRAME_PREFIX_SIZE, prefix.head);
    assert_non_null(head);
    assert_int_equal(head->kind, PEER_REFUSAL);
    assert_string_equal(head->refusal.reason, reason);
    message_forget(head);
}

static void set_head(struct outgoing *frame, char *reason)
{
    struct peer_refusal refusal = {0};

    refusal.reason = reason;
    const struct peer_message head = {.kind = PEER_REFUSAL, .refusal = refusal};
    assert_int_equal(outgoing_set_message(frame, &head), 0);
}

TEST(short_and_long_heads_are_encoded)
{
    struct outgoing_pool pool = {0};
    char reason[300];

    memset(reason, 'r', sizeof reason);
    for (size_t length = 0; length < sizeof reason; length++) {
        struct outgoing *frame = outgoing_new(&pool);
        reason[length] = '\0';
        frame->body_length = (uint32_t)length;
        set_head(frame, reason);
        check_head(frame, reason);
        assert_int_equal(frame->head == frame->inline_head,
                         frame->head_length <= OUTGOING_INLINE_HEAD);
        reason[length] = 'r';
        outgoing_free(&pool, frame);
    }
    assert_int_equal(pool.count, 1); /* one after another, the same one */
    outgoing_pool_close(&pool);
}

/* Encodes the head and decodes it again. The caller frees what is returned. */
static struct peer_message *through_a_frame(const struct peer_message *head)
{
    struct outgoing_pool pool = {0};
    struct outgoing *frame = outgoing_new(&pool);
    struct frame_prefix prefix;

    assert_int_equal(outgoing_set_message(frame, head), 0);
    assert_true(frame->head != frame->inline_head || frame->head_length <= OUTGOING_INLINE_HEAD);
    assert_int_equal(frame_prefix_read(frame->head, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL),
                     0);
    assert_int_equal(prefix.head + FRAME_PREFIX_SIZE, frame->head_length);
    struct peer_message *got = message_read(frame->head + FRAME_PREFIX_SIZE, prefix.head);
    assert_non_null(got);
    outgoing_free(&pool, frame);
    outgoing_pool_close(&pool);
    return got;
}

/* All fields have their largest values; there are 0 to 12 sizes or pieces, some more than always fit. */
TEST(heads_of_data_fit_whatever_their_numbers)
{
    uint32_t numbers[12];

    memset(numbers, 0xff, sizeof numbers);
    for (size_t count = 0; count <= sizeof numbers / sizeof *numbers; count++) {
        const struct peer_message stepped = {.kind = PEER_STEPPED_DATA,
                                             .stepped_data = {.exchange = UINT32_MAX,
                                                              .round = UINT32_MAX,
                                                              .step = UINT32_MAX,
                                                              .hops = UINT32_MAX,
                                                              .left = UINT32_MAX,
                                                              .n_sizes = count,
                                                              .sizes = numbers}};
        const struct peer_message streamed = {
            .kind = PEER_STREAMED_DATA,
            .streamed_data = {
                .exchange = UINT32_MAX, .round = UINT32_MAX, .n_pieces = count, .pieces = numbers}};
        struct peer_message *got = through_a_frame(&stepped);
        assert_int_equal(got->kind, PEER_STEPPED_DATA);
        assert_int_equal(got->stepped_data.left, UINT32_MAX);
        assert_int_equal(got->stepped_data.n_sizes, count);
        message_forget(got);

        got = through_a_frame(&streamed);
        assert_int_equal(got->kind, PEER_STREAMED_DATA);
        assert_int_equal(got->streamed_data.round, UINT32_MAX);
        assert_int_equal(got->streamed_data.n_pieces, count);
        message_forget(got);
    }
}

/* Prefix, head and check take at most 30 bytes a frame and 2 a block. */
TEST(heads_of_data_are_small)
{
    struct outgoing_pool pool = {0};
    struct outgoing *frame = outgoing_new(&pool);
    uint32_t places[200];
    const struct peer_message stepped = {
        .kind = PEER_STEPPED_DATA,
        .stepped_data = {.exchange = 4095, .round = 127, .step = 300, .hops = 300, .left = 300}};

    assert_int_equal(outgoing_set_message(frame, &stepped), 0);
    assert_in_range(frame->head_length, 1, 30);

    for (uint32_t i = 0; i < 200; i++)
        places[i] = 16383 - i;
    for (size_t count = 1; count <= 200; count++) {
        const struct peer_message streamed = {
            .kind = PEER_STREAMED_DATA,
            .streamed_data = {.exchange = 4095, .round = 127, .n_pieces = count, .pieces = places}};
        outgoing_free(&pool, frame);
        frame = outgoing_new(&pool);
        assert_int_equal(outgoing_set_message(frame, &streamed), 0);
        assert_in_range(frame->head_length, 1, 30 + 2 * count);
    }
    outgoing_free(&pool, frame);
    outgoing_pool_close(&pool);
}

TEST(a_frame_used_again_is_empty)
{
    struct outgoing_pool pool = {0};
    struct slab_pool slabs;

    slab_pool_init(&slabs, 0);
    struct slab *slab = slab_get(&slabs);
    struct outgoing *frame = outgoing_new(&pool);
    assert_int_equal(extents_add(&frame->body, slab, slab->data, 10), 0);
    frame->body_length = 10;
    char reason[] =
        "some reason that is long enough not to fit into the frame's own room for heads";
    set_head(frame, reason);
    frame->plain = frame->immediate = true;
    outgoing_free(&pool, frame);
    assert_int_equal(slab->references, 1);
    struct outgoing *again = outgoing_new(&pool);
    assert_ptr_equal(again, frame);
    assert_int_equal(again->body.count, 0);
    assert_int_equal(again->body_length, 0);
    assert_int_equal(again->head_length, 0);
    assert_ptr_equal(again->head, again->inline_head);
    assert_null(again->next);
    assert_false(again->plain || again->immediate);
    outgoing_free(&pool, again);
    outgoing_pool_close(&pool);
    slab_unref(slab);
    assert_int_equal(slab_pool_close(&slabs), 0);
}

TEST(a_queue_keeps_the_order)
{
    struct outgoing_pool pool = {0};
    struct outgoing_queue queue = {0};
    struct outgoing *frame[3];

    assert_null(outgoing_pop(&queue));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 3; i++)
            outgoing_push(&queue, frame[i] = outgoing_new(&pool));
        for (int i = 0; i < 3; i++) {
            assert_ptr_equal(outgoing_pop(&queue), frame[i]);
            outgoing_free(&pool, frame[i]);
        }
        assert_null(outgoing_pop(&queue));
        assert_null(queue.last);
    }
    outgoing_push(&queue, outgoing_new(&pool));
    outgoing_push(&queue, outgoing_new(&pool));
    outgoing_clear(&pool, &queue);
    assert_null(queue.first);
    assert_int_equal(pool.count, 3);
    outgoing_pool_close(&pool);
    assert_int_equal(pool.count, 0);
}

TEST(a_pool_keeps_a_bounded_number)
{
    struct outgoing_pool pool = {0};
    struct outgoing_queue queue = {0};

    for (int i = 0; i < 5000; i++)
        outgoing_push(&queue, outgoing_new(&pool));
    outgoing_clear(&pool, &queue);
    assert_in_range(pool.count, 1, 1000);
    outgoing_pool_close(&pool);
}
