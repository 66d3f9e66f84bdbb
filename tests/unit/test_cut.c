/* The cutting of blocks, compared with an independent way to find each byte's piece. */
#include "daemon/torusd/engine/cut.h"
#include "tests/support/cmocka.h"

enum { SIZE_MOST = 40, ROUND_MOST = 14, SEGMENTS_MOST = 6, ROUNDS = SIZE_MOST + 2 };

/* Bytes of a round of a block of `size` bytes, counted one by one. */
static uint32_t bytes_of_round(uint64_t size, uint32_t round_bytes, uint64_t round)
{
    uint32_t count = 0;

    for (uint64_t byte = 0; byte < size; byte++)
        count += byte / round_bytes == round;
    return count;
}

/* The smallest stride with which the segments cover all bytes. */
static uint32_t smallest_stride(const struct cut *cut, uint64_t round)
{
    uint32_t whole = cut->round_bytes, stride = 0;

    if (cut->uniform)
        whole = bytes_of_round(cut->block_bytes, cut->round_bytes, round);
    while (stride * cut->segments < whole)
        stride++;
    if (cut->uniform && cut->segments > 1)
        while (stride < cut->least)
            stride++;
    return stride;
}

/* The pieces of all rounds and segments of a block, byte by byte. */
static void check_block(const struct cut *cut, uint64_t size)
{
    uint8_t covered[SIZE_MOST] = {0};

    for (uint64_t round = 0; round < ROUNDS; round++) {
        const struct cut_round r = cut_round(cut, round);
        uint32_t together = 0;
        assert_int_equal(r.stride, smallest_stride(cut, round));
        assert_int_equal(cut_whole(&r, size), bytes_of_round(size, cut->round_bytes, round));
        for (uint32_t segment = 0; segment < cut->segments; segment++) {
            uint32_t length = cut_length(&r, size, segment);
            assert_true(length <= r.stride && length <= cut_longest(cut));
            assert_int_equal(cut_begin(&r, segment), round * cut->round_bytes + segment * r.stride);
            for (uint64_t i = 0; i < length; i++) {
                uint64_t byte = cut_begin(&r, segment) + i;
                assert_true(byte < size);
                assert_int_equal(byte / cut->round_bytes, round);
                assert_int_equal(byte % cut->round_bytes / r.stride, segment);
                covered[byte]++;
            }
            together += length;
        }
        assert_int_equal(together, cut_whole(&r, size));
    }
    for (uint64_t byte = 0; byte < SIZE_MOST; byte++)
        assert_int_equal(covered[byte], byte < size); /* once, and nothing else */
}

/* Calls `check` for every possible cut, without its block size. */
static void every_cut(void (*check)(struct cut cut))
{
    for (uint32_t round_bytes = 1; round_bytes <= ROUND_MOST; round_bytes++)
        for (uint32_t segments = 1; segments <= SEGMENTS_MOST; segments++)
            for (uint32_t least = 0; least <= ROUND_MOST + 1; least += 5)
                check(
                    (struct cut){.round_bytes = round_bytes, .segments = segments, .least = least});
}

static void check_uniform(struct cut cut)
{
    cut.uniform = true;
    for (cut.block_bytes = 0; cut.block_bytes <= SIZE_MOST; cut.block_bytes++)
        check_block(&cut, cut.block_bytes);
}

TEST(blocks_of_one_size_are_covered_once)
{
    every_cut(check_uniform);
}

static void check_sizes(struct cut cut)
{
    for (uint64_t size = 0; size <= SIZE_MOST; size++)
        check_block(&cut, size);
}

TEST(blocks_of_different_sizes_are_covered_once)
{
    every_cut(check_sizes);
}

/* If sizes differ, both ends of a leg must know the offset of a segment without knowing the size. */
static void check_stride(struct cut cut)
{
    cut.block_bytes = 7; /* means nothing */
    for (uint64_t round = 1; round < ROUNDS; round++)
        assert_int_equal(cut_round(&cut, round).stride, cut_round(&cut, 0).stride);
}

TEST(the_stride_does_not_depend_on_sizes_that_differ)
{
    every_cut(check_stride);
}

/* Checks that some piece is as long as cut_longest() says. */
static void check_longest(struct cut cut)
{
    cut.uniform = true;
    for (cut.block_bytes = 0; cut.block_bytes <= SIZE_MOST; cut.block_bytes++) {
        uint32_t longest = 0;
        for (uint64_t round = 0; round < ROUNDS; round++) {
            const struct cut_round r = cut_round(&cut, round);
            for (uint32_t segment = 0; segment < cut.segments; segment++)
                if (cut_length(&r, cut.block_bytes, segment) > longest)
                    longest = cut_length(&r, cut.block_bytes, segment);
        }
        assert_int_equal(longest, cut_longest(&cut));
    }
}

TEST(the_longest_piece_is_known)
{
    every_cut(check_longest);
}

/* The largest exchange: no number overflows. */
TEST(large_numbers)
{
    const uint64_t block = UINT64_C(1) << 50;
    const struct cut cut = {
        .uniform = true, .block_bytes = block, .round_bytes = UINT32_C(1) << 30, .segments = 3};
    const struct cut_round last = cut_round(&cut, (1u << 20) - 1),
                           behind = cut_round(&cut, 1 << 20);

    assert_int_equal(last.begin, block - (UINT64_C(1) << 30));
    assert_int_equal(last.stride, 357913942);
    assert_int_equal(cut_begin(&last, 2) + cut_length(&last, block, 2), block);
    assert_int_equal(cut_whole(&behind, block), 0);
    assert_int_equal(cut_length(&behind, block, 0), 0);
    assert_int_equal(cut_length(&last, UINT64_MAX, UINT32_MAX), 0);
}
