#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/router/frames/outgoing.h"

static void check_head(const struct outgoing *frame, const char *reason)
{
    struct frame_prefix prefix;

    assert_int_equal(frame_prefix_read(frame->head, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL),
                     0);
    assert_int_equal(prefix.head + FRAME_PREFIX_SIZE, frame->head_length);
    assert_int_equal(prefix.body, frame->body_length);
    Peer__Head *head = peer__head__unpack(NULL, prefix.head, frame->head + FRAME_PREFIX_SIZE);
    assert_non_null(head);
    assert_int_equal(head->kind_case, PEER__HEAD__KIND_REFUSAL);
    assert_string_equal(head->refusal->reason, reason);
    peer__head__free_unpacked(head, NULL);
}

static void set_head(struct outgoing *frame, char *reason)
{
    Peer__Refusal refusal = PEER__REFUSAL__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    refusal.reason = reason;
    head.kind_case = PEER__HEAD__KIND_REFUSAL;
    head.refusal = &refusal;
    assert_int_equal(outgoing_set_head(frame, &head), 0);
}

static void short_and_long_heads_are_encoded(void **state)
{
    struct outgoing_pool pool = {0};
    char reason[300];
    (void)state;
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
    assert_int_equal(pool.count, 1); /* one after the other, the same one */
    outgoing_pool_close(&pool);
}

/* Encodes the head and decodes it again. The caller frees what is returned. */
static Peer__Head *through_a_frame(const Peer__Head *head)
{
    struct outgoing_pool pool = {0};
    struct outgoing *frame = outgoing_new(&pool);
    struct frame_prefix prefix;

    assert_int_equal(outgoing_set_head(frame, head), 0);
    assert_true(frame->head != frame->inline_head || frame->head_length <= OUTGOING_INLINE_HEAD);
    assert_int_equal(frame_prefix_read(frame->head, FRAME_MAX_HEAD, FRAME_MAX_BODY, &prefix, NULL),
                     0);
    assert_int_equal(prefix.head + FRAME_PREFIX_SIZE, frame->head_length);
    Peer__Head *got = peer__head__unpack(NULL, prefix.head, frame->head + FRAME_PREFIX_SIZE);
    assert_non_null(got);
    outgoing_free(&pool, frame);
    outgoing_pool_close(&pool);
    return got;
}

/* The largest numbers there are; sizes and pieces up to and beyond what surely fits. */
static void heads_of_data_fit_whatever_their_numbers(void **state)
{
    uint32_t numbers[12];
    (void)state;
    memset(numbers, 0xff, sizeof numbers);
    for (size_t count = 0; count <= sizeof numbers / sizeof *numbers; count++) {
        Peer__SteppedData stepped = PEER__STEPPED_DATA__INIT;
        Peer__StreamedData streamed = PEER__STREAMED_DATA__INIT;
        Peer__Head head = PEER__HEAD__INIT, *got;

        stepped.exchange = stepped.round = stepped.step = stepped.hops = stepped.left = UINT32_MAX;
        stepped.n_sizes = count;
        stepped.sizes = numbers;
        head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
        head.stepped_data = &stepped;
        got = through_a_frame(&head);
        assert_int_equal(got->kind_case, PEER__HEAD__KIND_STEPPED_DATA);
        assert_int_equal(got->stepped_data->left, UINT32_MAX);
        assert_int_equal(got->stepped_data->n_sizes, count);
        peer__head__free_unpacked(got, NULL);

        streamed.exchange = streamed.round = UINT32_MAX;
        streamed.n_pieces = count;
        streamed.pieces = numbers;
        head.kind_case = PEER__HEAD__KIND_STREAMED_DATA;
        head.streamed_data = &streamed;
        got = through_a_frame(&head);
        assert_int_equal(got->kind_case, PEER__HEAD__KIND_STREAMED_DATA);
        assert_int_equal(got->streamed_data->round, UINT32_MAX);
        assert_int_equal(got->streamed_data->n_pieces, count);
        peer__head__free_unpacked(got, NULL);
    }
}

/* Prefix, head and check take at most 30 bytes a frame and 2 a block. */
static void heads_of_data_are_small(void **state)
{
    struct outgoing_pool pool = {0};
    struct outgoing *frame = outgoing_new(&pool);
    uint32_t places[200];
    Peer__SteppedData stepped = PEER__STEPPED_DATA__INIT;
    Peer__StreamedData streamed = PEER__STREAMED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    (void)state;
    stepped.exchange = 4095;
    stepped.round = 127;
    stepped.step = stepped.hops = stepped.left = 300;
    head.kind_case = PEER__HEAD__KIND_STEPPED_DATA;
    head.stepped_data = &stepped;
    assert_int_equal(outgoing_set_head(frame, &head), 0);
    assert_in_range(frame->head_length, 1, 30);

    for (uint32_t i = 0; i < 200; i++)
        places[i] = 16383 - i;
    streamed.exchange = 4095;
    streamed.round = 127;
    streamed.pieces = places;
    head.kind_case = PEER__HEAD__KIND_STREAMED_DATA;
    head.streamed_data = &streamed;
    for (size_t count = 1; count <= 200; count++) {
        outgoing_free(&pool, frame);
        frame = outgoing_new(&pool);
        streamed.n_pieces = count;
        assert_int_equal(outgoing_set_head(frame, &head), 0);
        assert_in_range(frame->head_length, 1, 30 + 2 * count);
    }
    outgoing_free(&pool, frame);
    outgoing_pool_close(&pool);
}

static void a_frame_used_again_is_empty(void **state)
{
    struct outgoing_pool pool = {0};
    struct slab_pool slabs;
    (void)state;
    slab_pool_init(&slabs, 0);
    struct slab *slab = slab_get(&slabs);
    struct outgoing *frame = outgoing_new(&pool);
    assert_int_equal(extents_add(&frame->body, slab, slab->data, 10), 0);
    frame->body_length = 10;
    char reason[] =
        "some reason that is long enough not to fit into the frame's own room for heads";
    set_head(frame, reason);
    outgoing_free(&pool, frame);
    assert_int_equal(slab->references, 1);
    struct outgoing *again = outgoing_new(&pool);
    assert_ptr_equal(again, frame);
    assert_int_equal(again->body.count, 0);
    assert_int_equal(again->body_length, 0);
    assert_int_equal(again->head_length, 0);
    assert_ptr_equal(again->head, again->inline_head);
    assert_null(again->next);
    outgoing_free(&pool, again);
    outgoing_pool_close(&pool);
    slab_unref(slab);
    assert_int_equal(slab_pool_close(&slabs), 0);
}

static void a_queue_keeps_the_order(void **state)
{
    struct outgoing_pool pool = {0};
    struct outgoing_queue queue = {0};
    struct outgoing *frame[3];
    (void)state;
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

static void a_pool_keeps_a_bounded_number(void **state)
{
    struct outgoing_pool pool = {0};
    struct outgoing_queue queue = {0};
    (void)state;
    for (int i = 0; i < 5000; i++)
        outgoing_push(&queue, outgoing_new(&pool));
    outgoing_clear(&pool, &queue);
    assert_in_range(pool.count, 1, 1000);
    outgoing_pool_close(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_and_long_heads_are_encoded),
        cmocka_unit_test(heads_of_data_fit_whatever_their_numbers),
        cmocka_unit_test(heads_of_data_are_small),
        cmocka_unit_test(a_frame_used_again_is_empty),
        cmocka_unit_test(a_queue_keeps_the_order),
        cmocka_unit_test(a_pool_keeps_a_bounded_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
