#include "daemon/torusd/engine/generated_blocks.h"
#include "tests/support/cmocka.h"

enum { LENGTH = 100 };

TEST(a_piece_is_part_of_the_whole)
{
    uint8_t whole[LENGTH], piece[LENGTH];

    pattern_fill(whole, LENGTH, 42, 3, 4, 0);
    for (uint32_t offset = 0; offset < LENGTH; offset++)
        for (uint32_t length = 0; offset + length <= LENGTH; length++) {
            memset(piece, 0xaa, sizeof piece);
            pattern_fill(piece, length, 42, 3, 4, offset);
            assert_memory_equal(piece, whole + offset, length);
            assert_true(length == LENGTH || piece[length] == 0xaa);
            assert_int_equal(pattern_compare(whole + offset, length, 42, 3, 4, offset), length);
        }
}

TEST(no_flipped_bit_goes_unnoticed)
{
    uint8_t block[LENGTH];

    for (uint32_t offset = 0; offset < 9; offset++) {
        pattern_fill(block, LENGTH, 7, 1, 2, offset);
        for (uint32_t bit = 0; bit < 8 * LENGTH; bit++) {
            block[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(pattern_compare(block, LENGTH, 7, 1, 2, offset), bit / 8);
            block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

TEST(no_two_blocks_or_places_look_alike)
{
    uint8_t block[LENGTH];

    pattern_fill(block, LENGTH, 7, 1, 2, 0);
    assert_in_range(pattern_compare(block, LENGTH, 8, 1, 2, 0), 0, 7);
    assert_in_range(pattern_compare(block, LENGTH, 7, 2, 1, 0), 0, 7);
    assert_in_range(pattern_compare(block, LENGTH, 7, 1, 3, 0), 0, 7);
    assert_in_range(pattern_compare(block, LENGTH, 7, 0, 2, 0), 0, 7);
    for (uint64_t shift = 1; shift < 1000; shift++)
        assert_in_range(pattern_compare(block, LENGTH, 7, 1, 2, shift), 0, 7);
    assert_in_range(pattern_compare(block, LENGTH, 7, 1, 2, UINT64_C(1) << 40), 0, 7);
}

TEST(a_source_fills_what_a_sink_accepts)
{
    struct slab_pool pool;
    struct extent piece;
    struct error e;

    slab_pool_init(&pool, 0);
    struct source *source = pattern_source(9, 4, 200000, &pool);
    struct sink *sink = pattern_sink(9, 6, false);
    uint64_t at = 0;
    assert_int_equal(source->ops->size(source, 6), 200000);
    while (at < 200000) {
        assert_int_equal(source->ops->read(source, 6, at, (uint32_t)(200000 - at), &piece, &e), 1);
        assert_true(piece.length > 0);
        assert_int_equal(sink->ops->write(sink, 4, at, &piece, &e), 0);
        /* Nobody else's block, and nowhere else in it. */
        assert_fails(sink->ops->write(sink, 5, at, &piece, &e), e, ERROR_DAMAGED, "");
        assert_int_equal(sink->ops->write(sink, 4, at + 1, &piece, &e), -1);
        at += piece.length;
        slab_unref(piece.slab);
    }
    assert_int_equal(sink->ops->pending(sink), 0);
    assert_true(sink->ops->finish(sink));
    assert_true(source->ops->finish(source));
    assert_true(source->ops->close(source));
    assert_true(sink->ops->close(sink, false));
    assert_int_equal(slab_pool_close(&pool), 0);
}

TEST(damage_is_named)
{
    struct slab_pool pool;
    struct error e;

    slab_pool_init(&pool, 0);
    struct slab *slab = slab_get(&pool);
    struct sink *sink = pattern_sink(9, 6, false);
    pattern_fill(slab->data, 50, 9, 4, 6, 1000);
    slab->data[17] ^= 1;
    const struct extent piece = {slab, slab->data, 50};
    assert_fails(sink->ops->write(sink, 4, 1000, &piece, &e), e, ERROR_DAMAGED,
                 "from node 4 to node 6");
    assert_contains(e.text, "byte 1017");
    sink->ops->close(sink, false);
    slab_unref(slab);
    assert_int_equal(slab_pool_close(&pool), 0);
}
