#include "daemon/lib/base/slab.h"
#include "tests/support/cmocka.h"

TEST(references_are_counted)
{
    struct slab_pool pool;

    slab_pool_init(&pool, 0);
    struct slab *slab = slab_get(&pool);
    assert_non_null(slab);
    assert_int_equal(pool.in_use, 1);
    slab_unref(slab_ref(slab));
    assert_int_equal(pool.in_use, 1);
    assert_int_equal(slab_pool_close(&pool), 1); /* a leak */
    slab_unref(slab);
    assert_int_equal(slab_pool_close(&pool), 0);
}

TEST(free_slabs_are_used_again_up_to_a_limit)
{
    struct slab_pool pool;
    struct slab *slab[4];

    slab_pool_init(&pool, 2 * SLAB_SIZE + SLAB_SIZE / 2);
    for (int i = 0; i < 4; i++)
        slab[i] = slab_get(&pool);
    for (int i = 0; i < 4; i++)
        slab_unref(slab[i]);
    assert_int_equal(pool.free_count, 2);
    assert_int_equal(pool.in_use, 0);
    struct slab *again = slab_get(&pool);
    assert_ptr_equal(again, slab[1]); /* the one freed last that was kept */
    assert_int_equal(again->references, 1);
    assert_int_equal(pool.free_count, 1);
    slab_unref(again);
    assert_int_equal(slab_pool_close(&pool), 0);
    assert_null(pool.free);
}

TEST(extents_merge_what_is_contiguous)
{
    struct slab_pool pool;
    struct extents x = {0};

    slab_pool_init(&pool, 0);
    struct slab *a = slab_get(&pool), *b = slab_get(&pool);
    assert_int_equal(extents_add(&x, a, a->data, 0), 0);
    assert_int_equal(x.count, 0);
    assert_int_equal(extents_add(&x, a, a->data, 10), 0);
    assert_int_equal(extents_add(&x, a, a->data + 10, 5), 0);
    assert_int_equal(x.count, 1);
    assert_int_equal(x.item[0].length, 15);
    assert_int_equal(a->references, 2); /* one of the extent's, however long it is */
    assert_int_equal(extents_add(&x, a, a->data + 16, 1), 0);
    assert_int_equal(x.count, 2);
    assert_int_equal(extents_add(&x, b, b->data, 1), 0);
    assert_int_equal(x.count, 3);
    extents_clear(&x);
    assert_int_equal(a->references, 1);
    assert_int_equal(b->references, 1);
    assert_true(x.capacity > 0);
    extents_free(&x);
    slab_unref(a);
    slab_unref(b);
    assert_int_equal(slab_pool_close(&pool), 0);
}

TEST(a_cursor_takes_everything_once)
{
    for (uint64_t most = 1; most < 12; most++) {
        struct slab_pool pool;
        struct extents x = {0};
        struct extent_cursor cursor = {0};
        struct extent piece;
        uint8_t seen[64];
        uint32_t n = 0;

        slab_pool_init(&pool, 0);
        struct slab *a = slab_get(&pool), *b = slab_get(&pool);
        for (unsigned i = 0; i < 30; i++) {
            a->data[i] = (uint8_t)i;
            b->data[i] = (uint8_t)(100 + i);
        }
        assert_int_equal(extents_add(&x, a, a->data, 7), 0);
        assert_int_equal(extents_add(&x, b, b->data + 3, 1), 0);
        assert_int_equal(extents_add(&x, a, a->data + 20, 9), 0);
        while (extents_take(&x, &cursor, most, &piece) > 0) {
            assert_in_range(piece.length, 1, most);
            memcpy(seen + n, piece.data, piece.length);
            n += piece.length;
        }
        static const uint8_t expected[] = {0,  1,  2,  3,  4,  5,  6,  103, 20,
                                           21, 22, 23, 24, 25, 26, 27, 28};
        assert_int_equal(n, sizeof expected);
        assert_memory_equal(seen, expected, sizeof expected);
        assert_int_equal(extents_take(&x, &cursor, 0, &piece), 0);
        extents_free(&x);
        slab_unref(a);
        slab_unref(b);
        assert_int_equal(slab_pool_close(&pool), 0);
    }
}

TEST(a_writer_never_overwrites_what_somebody_holds)
{
    struct slab_pool pool;
    struct slab_writer w = {0};
    struct extent held[5];

    slab_pool_init(&pool, 0);
    for (uint8_t i = 0; i < 5; i++) {
        uint8_t *at = slab_writer_take(&w, &pool, 40000, &held[i]);
        assert_ptr_equal(at, held[i].data);
        memset(at, i, 40000);
    }
    assert_int_equal(pool.in_use, 2); /* three fit into one */
    for (uint8_t i = 0; i < 5; i++) {
        for (uint32_t k = 0; k < 40000; k++)
            assert_int_equal(held[i].data[k], i);
        slab_unref(held[i].slab);
    }
    slab_writer_close(&w);
    assert_int_equal(slab_pool_close(&pool), 0);
}

TEST(a_writer_starts_over_when_nobody_holds_a_byte)
{
    struct slab_pool pool;
    struct slab_writer w = {0};
    struct extent piece;

    slab_pool_init(&pool, 0);
    uint8_t *first = slab_writer_take(&w, &pool, 100, &piece);
    slab_unref(piece.slab);
    assert_ptr_equal(slab_writer_take(&w, &pool, 100, &piece), first);
    slab_unref(piece.slab);
    assert_non_null(slab_writer_take(&w, &pool, SLAB_SIZE, &piece));
    slab_unref(piece.slab);
    assert_int_equal(pool.in_use, 1);
    slab_writer_close(&w);
    assert_int_equal(slab_pool_close(&pool), 0);
}

/* Two sequences of copies by one writer: bytes that are alone for a while form one extent. */
TEST(copies_in_a_row_are_one_extent)
{
    struct slab_pool pool;
    struct slab_writer w = {0};
    struct extents a = {0}, b = {0};
    static uint8_t bytes[1000];

    slab_pool_init(&pool, 0);
    for (uint32_t i = 0; i < 1000; i++)
        bytes[i] = (uint8_t)(i * 7);
    for (uint32_t i = 0; i < 500; i++)
        assert_int_equal(extents_copy(&a, &w, &pool, bytes + i, 1), 0);
    assert_int_equal(a.count, 1);
    for (uint32_t i = 0; i < 1000; i += 10)
        assert_int_equal(extents_copy(&b, &w, &pool, bytes + i, 10), 0);
    assert_int_equal(b.count, 1);
    assert_int_equal(extents_copy(&a, &w, &pool, bytes + 500, 500), 0); /* no longer in a row */
    assert_int_equal(a.count, 2);
    for (int i = 0; i < 2; i++) {
        struct extent_cursor cursor = {0};
        struct extent piece;
        for (uint32_t k = 0; k < 1000; k++) {
            assert_int_equal(extents_take(i == 0 ? &a : &b, &cursor, 1, &piece), 1);
            assert_int_equal(*piece.data, bytes[k]);
        }
        assert_int_equal(extents_take(i == 0 ? &a : &b, &cursor, 1, &piece), 0);
    }
    for (uint32_t i = 0; i < 3 * SLAB_SIZE / 1000; i++) /* more than a slab holds */
        assert_int_equal(extents_copy(&a, &w, &pool, bytes, 1000), 0);
    assert_in_range(a.count, 4, 6);
    for (uint32_t i = 0; i < a.count; i++)
        assert_true(a.item[i].data >= a.item[i].slab->data &&
                    a.item[i].data + a.item[i].length <= a.item[i].slab->data + SLAB_SIZE);
    extents_free(&a);
    extents_free(&b);
    slab_writer_close(&w);
    assert_int_equal(slab_pool_close(&pool), 0);
}

/* A reader that keeps a few bytes of each slab does not keep all slabs. */
TEST(a_few_bytes_do_not_keep_a_slab)
{
    enum { SLABS = 400 };
    static struct extent kept[SLABS];
    struct slab_writer w = {0};
    struct slab_pool pool;

    slab_pool_init(&pool, 0);
    for (int i = 0; i < SLABS; i++) {
        struct slab *in = slab_get(&pool);
        const struct extent bytes = {in, in->data + 5 * i, 70};
        memset(in->data, i, SLAB_SIZE);
        assert_int_equal(extent_keep(&w, &pool, &bytes, &kept[i]), 0);
        slab_unref(in);
    }
    assert_int_equal(pool.in_use, 1);
    for (int i = 0; i < SLABS; i++) {
        assert_int_equal(kept[i].length, 70);
        for (uint32_t k = 0; k < 70; k++)
            assert_int_equal(kept[i].data[k], (uint8_t)i);
        slab_unref(kept[i].slab);
    }
    slab_writer_close(&w);
    assert_int_equal(slab_pool_close(&pool), 0);
}

/* Long runs stay where they are, and so do short runs once enough of their slab was copied; the same for memory of no
 * pool. */
TEST(most_bytes_stay_where_they_are)
{
    struct slab_writer w = {0};
    struct slab_pool pool;
    uint32_t copied = 0;
    struct extent kept;

    slab_pool_init(&pool, 0);
    struct slab *in = slab_get(&pool), *lone = slab_without_pool(100, NULL, NULL);
    for (uint32_t at = 0; at + 1000 <= SLAB_SIZE; at += 1000) {
        const struct extent bytes = {in, in->data + at, 1000};
        assert_int_equal(extent_keep(&w, &pool, &bytes, &kept), 0);
        copied += kept.slab != in ? kept.length : 0;
        slab_unref(kept.slab);
    }
    assert_in_range(copied, SLAB_COPIED_MOST, SLAB_COPIED_MOST + 1000);
    slab_unref(in);
    in = slab_get(&pool);
    const struct extent longer = {in, in->data, SLAB_COPIED_MOST}, other = {lone, lone->data, 100};
    assert_int_equal(extent_keep(&w, &pool, &longer, &kept), 0);
    assert_ptr_equal(kept.slab, in);
    slab_unref(kept.slab);
    assert_int_equal(extent_keep(&w, &pool, &other, &kept), 0);
    assert_ptr_equal(kept.slab, lone);
    slab_unref(kept.slab);
    slab_unref(lone);
    slab_unref(in);
    slab_writer_close(&w);
    assert_int_equal(slab_pool_close(&pool), 0);
}
