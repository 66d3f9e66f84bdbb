/* tree, pair and dim: what every algorithm promises, and their own figures: startups, blocks,
 * messages. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/plan.h"
#include "daemon/lib/schedule/tree.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { LARGEST_HERE = 12, LARGEST_MESH = 8, MOST_PLANS = 36 };

static const char *const other_shapes[] = {
    "1",      "2",       "7",       "12",       "2m",      "1m",       "9m",
    "8m",     "2x2x2",   "1x1x1",   "3x4x5",    "3x4mx5",  "4x4x4",    "6x6x6",
    "2mx2x2", "1x6x1x3", "4x1mx6",  "3mx3mx3m", "2x3x2x3", "4x4x4x4",  "2x2x2x2x2x2",
    "8x4x2",  "3x3x3",   "5x3x5x1", "5mx4mx3m", "2x6x4",   "2x2x2mx2", "1x10"};

/* Runs check() for every rectangle and mesh of two dimensions, and the shapes above, that the
 * algorithm accepts. */
static void everywhere(const char *name, void (*check)(const struct torus *, const char *))
{
    const struct algorithm *a = algorithm_find(name);
    unsigned taken = 0;

    for (uint32_t rows = 1; rows <= LARGEST_HERE; rows++) {
        for (uint32_t columns = 1; columns <= LARGEST_HERE; columns++) {
            struct torus t = contract_rectangle(rows, columns);
            for (unsigned wrap = 0; wrap < 4; wrap++) {
                t.wrap[0] = (wrap & 1) == 0;
                t.wrap[1] = (wrap & 2) == 0;
                if ((wrap > 0 && (rows > LARGEST_MESH || columns > LARGEST_MESH)) ||
                    algorithm_accepts(a, &t, NULL) != 0)
                    continue;
                contract_check(&t, a);
                contract_check_no_gaps(&t, name);
                check(&t, name);
                taken++;
            }
        }
    }
    for (size_t i = 0; i < sizeof other_shapes / sizeof other_shapes[0]; i++) {
        struct torus t = contract_torus(other_shapes[i]);
        if (algorithm_accepts(a, &t, NULL) != 0)
            continue;
        contract_check(&t, a);
        contract_check_no_gaps(&t, name);
        check(&t, name);
        taken++;
    }
    assert_true(taken > 0);
}

/* The middle of the torus, which is the root of `tree`. */
static uint32_t middle(const struct torus *t)
{
    uint32_t at[TORUS_MAX_DIMS];
    for (unsigned i = 0; i < t->dims; i++)
        at[i] = t->wrap[i] ? 0 : t->size[i] / 2;
    return torus_rank(t, at);
}

/* The number of nodes at and below a node of the tree, by tree.h. */
static uint32_t below(const struct torus *t, uint32_t root, uint32_t node, uint32_t depth,
                      uint32_t *fullest)
{
    struct tree_node here;
    uint32_t nodes = 1;

    tree_node(t, root, node, &here);
    for (unsigned i = 0; i < here.children; i++)
        nodes += below(t, root, torus_neighbour(t, node, here.child[i]), depth + 1, fullest);
    if (nodes > fullest[depth])
        fullest[depth] = nodes;
    return nodes;
}

/* Checks that the node's messages are those of its edges in the tree: one up after all of its
 * children's, and one down to each child after its parent's. */
static uint32_t check_tree_node(const struct torus *t, uint32_t root, uint32_t rank, uint32_t depth)
{
    struct tree_node here;
    struct plan p;
    uint32_t sends, up = 0, down = 0;

    assert_int_equal(plan_build(&p, t, algorithm_find("tree"), rank, NULL), 0);
    tree_node(t, root, rank, &here);
    assert_int_equal(p.sends, here.children + (here.parent >= 0));
    assert_int_equal(p.arrivals, p.sends);
    for (uint32_t i = 0; i < p.sends; i++) {
        const struct plan_message *m = &p.send[i];
        assert_int_equal(m->hops, 1);
        if (m->port == here.parent && m->step < depth) {
            up++;
            assert_int_equal(m->step, depth - torus_distance(t, root, rank));
            for (unsigned child = 0; child < here.children; child++)
                assert_non_null(plan_arrival(&p, m->step - 1, here.child[child], 1, 0));
        } else {
            unsigned child = 0;
            while (child < here.children && here.child[child] != m->port)
                child++;
            assert_true(child < here.children);
            down++;
            assert_int_equal(m->step, depth + torus_distance(t, root, rank));
            if (here.parent >= 0)
                assert_non_null(plan_arrival(&p, m->step - 1, (uint8_t)here.parent, 1, 0));
        }
    }
    assert_int_equal(up, here.parent >= 0);
    assert_int_equal(down, here.children);
    sends = p.sends;
    plan_free(&p);
    return sends;
}

static void check_tree(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);
    uint32_t root = middle(t), depth = 0, sends = 0;
    uint64_t transmission = 0;

    for (uint32_t node = 0; node < t->nodes; node++)
        if (torus_distance(t, root, node) > depth)
            depth = torus_distance(t, root, node);
    assert_int_equal(r.startups, 2 * depth);
    assert_int_equal(r.contended_steps, 0);

    uint32_t *fullest = calloc(depth + 1, sizeof *fullest);
    assert_non_null(fullest);
    assert_int_equal(below(t, root, root, 0, fullest), t->nodes);
    for (uint32_t at = 1; at <= depth; at++)
        transmission += 2 * (uint64_t)fullest[at] * (t->nodes - fullest[at]);
    free(fullest);
    assert_int_equal(r.transmission, transmission);

    if (t->nodes > MOST_PLANS) /* every plan follows the routes of all pairs */
        return;
    for (uint32_t node = 0; node < t->nodes; node++)
        sends += check_tree_node(t, root, node, depth);
    assert_int_equal(sends, 2 * (t->nodes - 1));
}

TEST(tree_everywhere)
{
    everywhere("tree", check_tree);
}

static void check_same_messages(const struct plan_message *a, const struct plan_message *b,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(a[i].step, b[i].step);
        assert_int_equal(a[i].blocks, b[i].blocks);
        assert_int_equal(a[i].first, b[i].first);
        assert_int_equal(a[i].hops, b[i].hops);
        assert_int_equal(a[i].left, b[i].left);
        assert_int_equal(a[i].port, b[i].port);
    }
}

static void check_same_plan(const struct torus *t, const struct algorithm *walked, uint32_t rank)
{
    struct plan a, b;

    assert_int_equal(plan_build(&a, t, algorithm_find("tree"), rank, NULL), 0);
    assert_int_equal(plan_build(&b, t, walked, rank, NULL), 0);
    assert_int_equal(a.rank, b.rank);
    assert_int_equal(a.steps, b.steps);
    assert_int_equal(a.sends, b.sends);
    assert_int_equal(a.arrivals, b.arrivals);
    assert_int_equal(a.blocks, b.blocks);
    assert_int_equal(a.slots, b.slots);
    assert_int_equal(a.peak_transit, b.peak_transit);
    check_same_messages(a.send, b.send, a.sends);
    check_same_messages(a.arrival, b.arrival, a.arrivals);
    for (uint32_t i = 0; i < a.blocks; i++) {
        assert_int_equal(a.block[i].source, b.block[i].source);
        assert_int_equal(a.block[i].destination, b.block[i].destination);
        assert_int_equal(a.block[i].segment, b.block[i].segment);
        assert_int_equal(a.block[i].slot, b.block[i].slot);
    }
    plan_free(&a);
    plan_free(&b);
}

/* The plans that `tree` makes itself, and its most blocks in transit, agree with its routes. */
TEST(tree_knows_its_plans)
{
    static const char *const shapes[] = {"1",     "2",      "2m",    "7",     "8m",
                                         "4x4",   "5x3",    "4mx5",  "3x6m",  "5mx4m",
                                         "2x2x2", "3x4mx2", "1x6x1", "3x3x3", "2x3mx2x3"};
    struct algorithm walked = *algorithm_find("tree");

    assert_non_null(walked.plan);
    walked.plan = NULL;
    walked.peak_transit = NULL;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        uint32_t peak, expected;
        for (uint32_t rank = 0; rank < t.nodes; rank++)
            check_same_plan(&t, &walked, rank);
        assert_int_equal(plan_peak_transit(&t, algorithm_find("tree"), &peak, NULL), 0);
        assert_int_equal(plan_peak_transit(&t, &walked, &expected, NULL), 0);
        assert_int_equal(peak, expected);
    }
}

/* A node's blocks, or those in transit, are more than can be counted. */
TEST(tree_is_too_large)
{
    struct torus t = contract_torus("1024x1024");
    struct error e = {.code = ERROR_NONE};
    struct plan p;
    uint32_t peak;

    assert_fails(plan_build(&p, &t, algorithm_find("tree"), 0, &e), e, ERROR_MEMORY, "");
    e.code = ERROR_NONE;
    assert_fails(plan_peak_transit(&t, algorithm_find("tree"), &peak, &e), e, ERROR_MEMORY, "");
}

/* Checks that a node sends one message in every step, and receives one over the same link. */
static void check_swaps(const struct torus *t, uint32_t rank)
{
    struct plan p;

    assert_int_equal(plan_build(&p, t, algorithm_find("pair"), rank, NULL), 0);
    assert_int_equal(p.sends, p.steps);
    assert_int_equal(p.arrivals, p.steps);
    for (uint32_t step = 0; step < p.steps; step++) {
        assert_int_equal(p.send[step].step, step);
        assert_int_equal(p.arrival[step].step, step);
        assert_int_equal(p.send[step].port, p.arrival[step].port);
        assert_int_equal(p.send[step].blocks, p.arrival[step].blocks);
    }
    plan_free(&p);
}

static uint32_t pair_startups(const struct torus *t)
{
    uint32_t steps = 0;
    for (unsigned i = 0; i < t->dims; i++)
        steps += t->size[i] / 2;
    return steps;
}

static uint64_t pair_blocks(const struct torus *t)
{
    uint64_t blocks = 0;
    for (unsigned i = 0; i < t->dims; i++)
        blocks += t->size[i] > 1 ? t->nodes / 2 * t->size[i] / 2 : 0;
    return blocks;
}

/* Whether all dimensions of more than one node have the same size. Sets *count to their number. */
static bool equal_sizes(const struct torus *t, unsigned *count)
{
    uint32_t size = 0;
    bool wrap = false, equal = true;

    *count = 0;
    for (unsigned i = 0; i < t->dims; i++) {
        if (t->size[i] == 1)
            continue;
        equal &= *count == 0 || (t->size[i] == size && t->wrap[i] == wrap);
        size = t->size[i];
        wrap = t->wrap[i];
        ++*count;
    }
    return equal;
}

static void check_pair(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);

    assert_int_equal(r.startups, pair_startups(t));
    assert_int_equal(r.transmission, pair_blocks(t));
    assert_int_equal(r.critical_path, pair_blocks(t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    assert_true(r.one_port_kept);
    check_swaps(t, 0);
    check_swaps(t, t->nodes - 1);
    check_swaps(t, t->nodes / 2);
}

/* Checks that segments which never use the same channels cost what a single one does. */
static void check_pair_split(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);
    uint32_t segments = algorithm_find(name)->segments;
    unsigned count;

    assert_int_equal(r.startups, pair_startups(t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    assert_in_range(r.transmission, pair_blocks(t), segments * pair_blocks(t));
    if (equal_sizes(t, &count) && (segments == 2 || count >= 2))
        assert_int_equal(r.transmission, pair_blocks(t));
    if (equal_sizes(t, &count) && (segments == 2 * count))
        assert_true((double)r.transmission == r.bound * segments);
}

TEST(pair_everywhere)
{
    everywhere("pair", check_pair);
    everywhere("pair-s2", check_pair_split);
    everywhere("pair-s4", check_pair_split);
}

/* With a segment for each, both links between the nodes of a ring of 2 are used. */
TEST(pair_uses_both_links)
{
    const struct algorithm *a = algorithm_find("pair-s2");
    struct torus t = contract_torus("2");
    struct leg one, other;

    assert_int_equal(algorithm_route(a, &t, 0, 1, 0, &one), 1);
    assert_int_equal(algorithm_route(a, &t, 0, 1, 1, &other), 1);
    assert_int_not_equal(one.direction, other.direction);
    assert_int_equal(one.step, other.step);
}

TEST(pair_refuses)
{
    static const char *const names[] = {"pair", "pair-s2", "pair-s4"};
    static const char *const tori[] = {"3", "4x5", "7x2", "4m", "4x4m", "2mx2", "4x4x1x3"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        for (size_t j = 0; j < sizeof tori / sizeof tori[0]; j++)
            contract_refused(names[i], tori[j]);
}

static uint32_t dim_startups(const struct torus *t)
{
    uint32_t steps = 0;
    for (unsigned i = 0; i < t->dims; i++)
        steps += t->wrap[i] ? t->size[i] / 2 : t->size[i] - 1;
    return steps;
}

/* Twice the number of blocks on the busiest channels. */
static uint64_t dim_blocks_twice(const struct torus *t)
{
    uint64_t blocks = 0;
    for (unsigned i = 0; i < t->dims; i++) {
        uint64_t n = t->size[i], lines = t->nodes / n;
        if (!t->wrap[i])
            blocks += lines * n * (n - 1);
        else if (n % 2 == 0 && lines % 2 != 0)
            blocks += lines * (n * n / 4) + n / 2;
        else
            blocks += lines * (n * n / 4);
    }
    return blocks;
}

static void check_dim(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);

    assert_int_equal(r.startups, dim_startups(t));
    assert_int_equal(2 * r.transmission, dim_blocks_twice(t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
}

static void check_dim_split(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);
    unsigned count;

    assert_int_equal(r.startups, dim_startups(t));
    assert_in_range(r.transmission, 0, dim_blocks_twice(t));
    assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    if (equal_sizes(t, &count) && count >= 2)
        assert_int_equal(2 * r.transmission, dim_blocks_twice(t));
}

TEST(dim_everywhere)
{
    everywhere("dim", check_dim);
    everywhere("dim-s2", check_dim_split);
}

static uint64_t dim_tree_blocks(const struct torus *t)
{
    uint64_t blocks = 0;
    for (unsigned i = 0; i < t->dims; i++)
        for (uint64_t n = t->size[i], a = 1; a <= n / 2; a++)
            blocks += 2 * a * (n - a) * (t->nodes / n);
    return blocks;
}

/* Messages: one each way over the n - 1 links of every line's tree. */
static uint64_t dim_tree_messages(const struct torus *t)
{
    uint64_t messages = 0;
    for (unsigned i = 0; i < t->dims; i++)
        messages += (uint64_t)t->nodes / t->size[i] * 2 * (t->size[i] - 1);
    return messages;
}

static void check_dim_tree(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);
    uint32_t steps = 0;
    uint64_t sends = 0;

    for (unsigned i = 0; i < t->dims; i++)
        steps += t->size[i] / 2 * 2;
    assert_int_equal(r.startups, steps);
    assert_int_equal(r.transmission, dim_tree_blocks(t));
    assert_in_range(r.critical_path, 0, r.transmission);
    assert_int_equal(r.contended_steps, 0);
    if (t->nodes > MOST_PLANS)
        return;
    for (uint32_t rank = 0; rank < t->nodes; rank++) {
        struct plan p;
        assert_int_equal(plan_build(&p, t, algorithm_find(name), rank, NULL), 0);
        sends += p.sends;
        plan_free(&p);
    }
    assert_int_equal(sends, dim_tree_messages(t));
}

TEST(dim_tree_everywhere)
{
    everywhere("dim-tree", check_dim_tree);
}

/* With a segment for each dimension, every channel is always busy. */
TEST(halves_reach_the_bound)
{
    static const char *const tori[] = {"2x2", "4x4", "8x8", "10x10"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct schedule_report r = contract_verify(&t, "dim-s2");
        assert_true((double)r.transmission == 2 * r.bound);
        r = contract_verify(&t, "pair-s4");
        assert_true((double)r.transmission == 4 * r.bound);
    }
}
