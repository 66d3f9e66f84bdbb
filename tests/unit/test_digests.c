/* Digests of blocks that pass in pieces. */
#include "daemon/torusd/group/digests.h"
#include "tests/support/cmocka.h"
#include <stdlib.h>
#include <string.h>

#define MOST 70000u

static uint8_t block[MOST], scratch[MOST];

static uint64_t whole(const uint8_t *data, uint64_t size, uint64_t seed)
{
    struct passing_digest d = {0};
    return digest_finish(&d, data, size, seed);
}

static void fill(unsigned seed)
{
    srandom(seed);
    for (size_t i = 0; i < MOST; i++)
        block[i] = (uint8_t)random();
}

/* Cut at random; some pieces pass twice, some only at the end, from memory. */
static uint64_t in_pieces(uint64_t size, uint64_t seed)
{
    uint64_t cut[40] = {0}, cuts = 1;
    struct passing_digest d = {0};

    while (cut[cuts - 1] < size && cuts < 39) {
        cut[cuts] = cut[cuts - 1] + 1 + (uint64_t)random() % (random() % 2 == 0 ? 100 : 20000);
        if (cut[cuts] > size)
            cut[cuts] = size;
        cuts++;
    }
    for (unsigned i = 0; i < 3 * cuts; i++) {
        uint64_t k = (uint64_t)random() % (cuts - (cuts > 1));
        uint64_t length = cuts > 1 ? cut[k + 1] - cut[k] : 0;
        /* Pieces are read from other memory; the block's own memory is read only at the end. */
        memcpy(scratch, block + cut[k], length);
        digest_pass(&d, scratch, cut[k], length, size, seed);
    }
    return digest_finish(&d, block, size, seed);
}

TEST(it_is_the_same_in_any_pieces)
{
    static const uint64_t sizes[] = {0, 1, 2047, 2048, 2049, 4096, 16384, 30001, MOST};

    for (unsigned round = 0; round < 50; round++) {
        fill(round);
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            assert_int_equal(in_pieces(sizes[i], round), whole(block, sizes[i], round));
    }
}

/* The digest is that of the passed bytes, not of the memory at the end. */
TEST(pieces_are_read_as_they_pass)
{
    struct passing_digest d = {0};

    fill(1);
    uint64_t right = whole(block, 8192, 7);
    digest_pass(&d, block, 0, 8192, 8192, 7);
    memset(block, 0, 8192);
    assert_int_equal(digest_finish(&d, block, 8192, 7), right);
}

TEST(every_change_changes_it)
{
    fill(2);
    uint64_t right = whole(block, 10000, 7);
    assert_true(whole(block, 10000, 8) != right);
    assert_true(whole(block, 9999, 7) != right);
    for (unsigned bit = 0; bit < 80000; bit += 97) {
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(whole(block, 10000, 7) != right);
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    /* Pages that are exchanged. */
    memcpy(scratch, block, 2048);
    memcpy(block, block + 4096, 2048);
    memcpy(block + 4096, scratch, 2048);
    assert_true(whole(block, 10000, 7) != right);
}

/* The memory of an abandoned digest is freed (sanitizers check that). */
TEST(it_can_be_dropped)
{
    struct passing_digest d = {0};

    digest_drop(&d);
    digest_pass(&d, block, 0, 4096, 8192, 1);
    assert_non_null(d.added);
    digest_drop(&d);
    assert_null(d.added);
}
