/* Products in a simulation of their own, apart from the real core.
 * Here every node has a store of blocks and knows only the schedule; blocks carry a payload and move hop by hop. */
#include "daemon/lib/schedule/product.h"
#include "tests/support/cmocka.h"

static uint64_t payload(uint32_t source, uint32_t destination)
{
    return (((uint64_t)source << 32 | destination) + 1) * 0x9e3779b97f4a7c15u;
}

/* ---- Products of rings, arrays and complete graphs ------------------------------------------- */

struct block {
    uint32_t source, destination;
    uint64_t payload;
};

/* The blocks at a node: its own, those that wait for their next hop, and those for itself. */
struct store {
    struct block *at;
    uint32_t count, room;
};

static void put(struct store *s, struct block b)
{
    if (s->count == s->room) {
        s->room = 2 * s->room + 16;
        s->at = reallocarray(s->at, s->room, sizeof *s->at);
        assert_non_null(s->at);
    }
    s->at[s->count++] = b;
}

static bool linked(const struct product *p, uint32_t a, uint32_t b)
{
    return a != b && product_distance(p, a, b) == 1;
}

/* Where a block goes from `here` in a step; `here` if it stays. Follows its route from the beginning, and checks that
 * the route leads to `here` by then. */
static uint32_t next_hop(const struct product *p, enum product_algorithm how, const struct block *b,
                         uint32_t step, uint32_t here)
{
    struct product_walk walks[PRODUCT_MAX_DIMS];
    unsigned count = product_route(p, how, b->source, b->destination, walks);
    uint32_t at = b->source;

    for (unsigned i = 0; i < count; i++) {
        uint32_t stride = 1, n = p->factor[walks[i].dim].nodes;
        for (unsigned j = p->dims; --j > walks[i].dim;)
            stride *= p->factor[j].nodes;
        for (uint32_t hop = 0; hop < walks[i].walk.hops; hop++) {
            uint32_t x = at / stride % n;
            int64_t y = ((int64_t)x + walks[i].walk.stride) % (int64_t)n;
            uint32_t to = at - x * stride + (uint32_t)(y < 0 ? y + n : y) * stride;
            if (walks[i].walk.step + hop >= step) {
                assert_int_equal(at, here);
                return walks[i].walk.step + hop == step ? to : here;
            }
            at = to;
        }
    }
    assert_int_equal(at, here);
    return here;
}

/* One step: every node sends its due blocks to at most one neighbour, and receives blocks from at most one. Returns the
 * number of blocks in the largest message. */
static uint32_t run_step(const struct product *p, enum product_algorithm how, struct store *stores,
                         uint32_t step)
{
    struct store *coming = calloc(p->nodes, sizeof *coming);
    uint32_t *from = calloc(p->nodes, sizeof *from); /* sender + 1 */
    uint32_t largest = 0;

    assert_true(coming && from);
    for (uint32_t node = 0; node < p->nodes; node++) {
        struct store *s = &stores[node];
        uint32_t kept = 0, receiver = node;
        for (uint32_t i = 0; i < s->count; i++) {
            uint32_t to = next_hop(p, how, &s->at[i], step, node);
            if (to == node) {
                s->at[kept++] = s->at[i];
                continue;
            }
            assert_true(linked(p, node, to));
            assert_true(receiver == node || receiver == to);    /* one send */
            assert_true(from[to] == 0 || from[to] == node + 1); /* one receive */
            receiver = to;
            from[to] = node + 1;
            put(&coming[to], s->at[i]);
        }
        s->count = kept;
    }
    for (uint32_t node = 0; node < p->nodes; node++) {
        largest = coming[node].count > largest ? coming[node].count : largest;
        for (uint32_t i = 0; i < coming[node].count; i++)
            put(&stores[node], coming[node].at[i]);
        free(coming[node].at);
    }
    free(coming);
    free(from);
    return largest;
}

/* At the end a node has one undamaged block of every other node for itself. */
static void check_store(const struct product *p, const struct store *s, uint32_t node)
{
    bool *seen = calloc(p->nodes, sizeof *seen);

    assert_non_null(seen);
    assert_int_equal(s->count, p->nodes - 1);
    for (uint32_t i = 0; i < s->count; i++) {
        assert_int_equal(s->at[i].destination, node);
        assert_int_equal(s->at[i].payload, payload(s->at[i].source, node));
        assert_false(seen[s->at[i].source]);
        seen[s->at[i].source] = true;
    }
    free(seen);
}

static void run_product(const char *text, enum product_algorithm how)
{
    struct product p;
    uint64_t blocks = 0;

    assert_int_equal(product_parse(&p, text, NULL), 0);
    struct store *stores = calloc(p.nodes, sizeof *stores);
    assert_non_null(stores);
    for (uint32_t s = 0; s < p.nodes; s++)
        for (uint32_t d = 0; d < p.nodes; d++)
            if (s != d)
                put(&stores[s], (struct block){s, d, payload(s, d)});
    for (uint32_t step = 0; step < product_steps(&p, how); step++) {
        uint32_t largest = run_step(&p, how, stores, step);
        assert_true(largest > 0); /* no step without blocks */
        blocks += largest;
    }
    assert_int_equal(blocks, product_blocks(&p, how));
    for (uint32_t node = 0; node < p.nodes; node++) {
        check_store(&p, &stores[node], node);
        free(stores[node].at);
    }
    free(stores);
}

/* Optimal if all dimensions are complete graphs: as many block times as the single-hop bound. */
TEST(generalized_hypercubes)
{
    static const char *const networks[] = {"complete:1",
                                           "complete:2",
                                           "complete:7",
                                           "complete:16",
                                           "complete:2^5",
                                           "complete:3^3",
                                           "complete:4 x complete:5",
                                           "complete:2 x complete:6 x complete:3"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct product p;
        run_product(networks[i], PRODUCT_A1);
        run_product(networks[i], PRODUCT_A2);
        assert_int_equal(product_parse(&p, networks[i], NULL), 0);
        assert_true((double)product_blocks(&p, PRODUCT_A2) < product_bound_single_hops(&p) + 1e-9);
    }
}

TEST(mixed_products)
{
    static const char *const networks[] = {"ring:5 x complete:4", "array:3 x complete:3 x ring:4",
                                           "array:6", "ring:6 x array:4"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        run_product(networks[i], PRODUCT_A1);
        run_product(networks[i], PRODUCT_A2);
    }
}
