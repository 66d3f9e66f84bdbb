/* What has arrived of blocks, compared with a map of their bytes; and sources and sinks of remainders. */
#include "daemon/torusd/engine/arrived.h"
#include "daemon/torusd/engine/generated_blocks.h"
#include "daemon/torusd/engine/missing_blocks.h"
#include "tests/support/cmocka.h"

#define NODES 5u
#define BYTES 300u

static uint32_t any(uint32_t below)
{
    static uint64_t state = 88172645463325252u;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state % below);
}

/* Random spans, and which bytes of which block they are. */
static void make(struct arrived *a, bool map[NODES][BYTES])
{
    uint32_t spans = any(12);

    memset(map, 0, sizeof(bool) * NODES * BYTES);
    *a = (struct arrived){0};
    for (uint32_t i = 0; i < spans; i++) {
        uint32_t node = any(NODES), begin = any(BYTES), end = begin + any(BYTES + 1 - begin);
        if (any(3) == 0)
            end = begin + (end - begin) / 8;
        assert_int_equal(arrived_add(a, node, begin, end), 0);
        memset(&map[node][begin], true, end - begin);
    }
}

TEST(each_block_has_its_own_bytes)
{
    for (int run = 0; run < 60; run++) {
        bool map[NODES][BYTES];
        struct arrived a;
        make(&a, map);
        size_t spans = 0;
        for (uint32_t node = 0; node < NODES; node++) {
            uint64_t bytes = 0, end = BYTES;
            for (uint32_t i = 0; i < BYTES; i++)
                bytes += map[node][i];
            while (end > 0 && !map[node][end - 1])
                end--;
            assert_int_equal(arrived_of(&a, node)->bytes, bytes);
            assert_int_equal(arrived_end(&a, node), end);
            spans += arrived_of(&a, node)->count;
        }
        assert_int_equal(a.spans, spans);
        assert_int_equal(arrived_of(&a, NODES)->bytes, 0);
        arrived_trim(&a, 1);
        for (uint32_t node = 0; node < NODES; node++)
            assert_true(arrived_of(&a, node)->count <= 1);
        assert_true(a.spans <= NODES);
        arrived_free(&a);
    }
}

TEST(a_block_is_dropped)
{
    for (int run = 0; run < 60; run++) {
        bool map[NODES][BYTES];
        uint64_t bytes[NODES];
        struct arrived a;
        make(&a, map);
        uint32_t gone = any(NODES);
        for (uint32_t node = 0; node < NODES; node++)
            bytes[node] = node == gone ? 0 : arrived_of(&a, node)->bytes;
        arrived_drop(&a, gone);
        for (uint32_t node = 0; node < NODES; node++)
            assert_int_equal(arrived_of(&a, node)->bytes, bytes[node]);
        arrived_free(&a);
    }
}

/* The remainder of a pattern goes from a source to a sink, which compares every byte, in pieces of any
 * length. */
TEST(a_remainder_is_moved)
{
    struct slab_pool pool;
    struct error e;

    slab_pool_init(&pool, 1u << 20);
    for (int run = 0; run < 60; run++) {
        bool map[NODES][BYTES];
        struct arrived a, there = {0};
        make(&a, map);
        /* The bytes that node 3 has of the block from node 1 are those that node 1 hears of. */
        const struct intervals *of_1 = arrived_of(&a, 1);
        for (size_t i = 0; i < of_1->count; i++)
            assert_int_equal(arrived_add(&there, 3, of_1->item[i].begin, of_1->item[i].end), 0);
        struct source *source = pattern_source(7, 1, BYTES, &pool);
        source->skips = &there;
        struct sink *sink = remainder_sink(pattern_sink(7, 3, false), &a, BYTES);
        assert_true(!sink->durable && sink->check == CHECK_CONTENTS);
        uint64_t size = source->ops->size(source, 3), at = 0;
        assert_int_equal(size, BYTES - arrived_of(&a, 1)->bytes);
        while (at < size) {
            struct extent piece;
            uint32_t most = 1 + any((uint32_t)(size - at));
            assert_int_equal(source->ops->read(source, 3, at, most, &piece, &e), 1);
            assert_true(piece.length > 0 && piece.length <= most);
            assert_int_equal(sink->ops->write(sink, 1, at, &piece, &e), 0);
            at += piece.length;
            slab_unref(piece.slab);
        }
        /* Nothing beyond that. */
        uint8_t more = 0;
        const struct extent piece = {.data = &more, .length = 1};
        struct extent none;
        assert_int_equal(sink->ops->write(sink, 1, size, &piece, &e), -1);
        assert_int_equal(source->ops->read(source, 3, size, 1, &none, &e), -1);
        assert_true(source->ops->close(source) && sink->ops->close(sink, false));
        arrived_free(&a);
        arrived_free(&there);
    }
    assert_int_equal(slab_pool_close(&pool), 0);
}
