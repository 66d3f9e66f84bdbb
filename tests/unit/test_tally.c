/* Counts by key: right, in order, and fast for any keys. */
#include "daemon/lib/schedule/tally.h"
#include "tests/support/cmocka.h"

#define KEYS 50000u

/* The key whose product with `multiplier` (odd) is `product`. */
static uint64_t key_for(uint64_t multiplier, uint64_t product)
{
    uint64_t inverse = multiplier; /* right in 3 bits; each turn doubles these */

    for (int i = 0; i < 5; i++)
        inverse *= 2 - multiplier * inverse;
    return product * inverse;
}

TEST(each_key_is_counted_in_order)
{
    struct tally t = {0};

    for (uint64_t times = 1; times <= 3; times++)
        for (uint64_t key = 0; key < KEYS; key += times)
            assert_int_equal(tally_add(&t, (KEYS - key) << 30), 0);
    assert_int_equal(t.count, KEYS);
    tally_sort(&t);
    assert_int_equal(t.count, KEYS);
    for (uint64_t i = 0; i < KEYS; i++) {
        uint64_t key = KEYS - 1 - i;
        assert_int_equal(t.at[i].key, (KEYS - key) << 30);
        assert_int_equal(t.at[i].count, 1 + (key % 2 == 0) + (key % 3 == 0));
    }
    tally_free(&t);
}

TEST(an_empty_tally_can_be_sorted)
{
    struct tally t = {0};

    tally_sort(&t);
    assert_int_equal(t.count, 0);
    tally_free(&t);
}

static void add_soon(struct tally *t, uint64_t key)
{
    assert_int_equal(tally_add(t, key), 0);
    assert_true(t->earlier + t->probes < 64 * (uint64_t)KEYS);
}

/* Keys of messages, as predict_count() makes them, differ in their highest and middle bits only. */
TEST(keys_that_differ_in_few_bits_do_not_meet)
{
    struct tally t = {0};

    for (uint64_t i = 0; i < KEYS; i++) /* a node, a port of four, and a step */
        assert_int_equal(tally_add(&t, (i / 12 / 4 * 32 + i / 12 % 4) << 40 | (i % 12) << 16 | 1),
                         0);
    assert_true(t.earlier + t.probes < 8 * (uint64_t)KEYS);
    tally_free(&t);
}

/* Keys that would all collide if the multiplier were known beforehand. */
TEST(keys_that_were_chosen_to_meet_do_not)
{
    static const uint64_t multipliers[] = {1, 0x9e3779b97f4a7c15u, 0xbf58476d1ce4e5b9u,
                                           0x94d049bb133111ebu};

    for (size_t i = 0; i < sizeof multipliers / sizeof *multipliers; i++) {
        struct tally t = {0};
        for (uint64_t k = 0; k < KEYS; k++)
            add_soon(&t, key_for(multipliers[i], k));
        assert_int_equal(t.count, KEYS);
        tally_free(&t);
    }
    /* The same, with products that also differ in their highest bits. */
    struct tally t = {0};
    for (uint64_t k = 0; k < KEYS; k++)
        add_soon(&t, key_for(multipliers[1], k << 54 | k));
    tally_free(&t);
}
