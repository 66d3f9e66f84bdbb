/* All-to-all broadcasts along shortest paths: the theorem of client/doc/open-questions.md, checked by counting
 * from its statement alone, and that matched follows it. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

enum { MOST_DIMS = 4 };

/* The links of a node by which the block of a source can come on a shortest path, a bit each: 2 * dim for those that come
 * from smaller coordinates, 2 * dim + 1 for the others. */
static unsigned links_from(const struct torus *t, const uint32_t *node, const uint32_t *source)
{
    unsigned links = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        uint32_t up = (node[i] + t->size[i] - source[i]) % t->size[i], down = t->size[i] - up;
        if (up == 0)
            continue;
        if (t->wrap[i] ? up <= down : node[i] > source[i])
            links |= 1u << 2 * i;
        if (t->wrap[i] ? down <= up : node[i] < source[i])
            links |= 1u << (2 * i + 1);
    }
    return links;
}

/* The least load of a node's busiest link, by Hall's theorem: for any set of links, the blocks that
 * can come by no other link, divided by the links of the set. */
static uint32_t least_at(const struct torus *t, uint32_t node)
{
    uint32_t blocks[1u << 2 * MOST_DIMS] = {0}, at[TORUS_MAX_DIMS], from[TORUS_MAX_DIMS], most = 0;

    torus_coordinates(t, node, at);
    for (uint32_t source = 0; source < t->nodes; source++) {
        torus_coordinates(t, source, from);
        blocks[links_from(t, at, from)]++;
    }
    blocks[0] = 0; /* its own */
    for (unsigned set = 1; set < 1u << 2 * t->dims; set++) {
        uint32_t sum = 0, links = (uint32_t)__builtin_popcount(set);
        for (unsigned part = set; part > 0; part = (part - 1) & set)
            sum += blocks[part];
        uint32_t share = (sum + links - 1) / links;
        most = share > most ? share : most;
    }
    return most;
}

static uint32_t least(const struct torus *t)
{
    uint32_t most = 0;

    for (uint32_t node = 0; node < t->nodes; node++) {
        uint32_t here = least_at(t, node);
        most = here > most ? here : most;
    }
    return most;
}

/* The theorem: the most, over sets A of dimensions, of ceil((nodes of A - 1) / links of A), with two
 * links for a ring, one for a line. */
static uint32_t stated(const struct torus *t)
{
    uint32_t most = 0;

    for (unsigned set = 1; set < 1u << t->dims; set++) {
        uint32_t nodes = 1, links = 0;
        for (unsigned i = 0; i < t->dims; i++)
            if ((set >> i & 1) != 0) {
                nodes *= t->size[i];
                links += t->wrap[i] ? 2 : 1;
            }
        uint32_t share = (nodes - 1 + links - 1) / links;
        most = share > most ? share : most;
    }
    return most;
}

/* The exception: the nodes of the only line if all others are rings of 2, otherwise 0. */
static uint32_t line_among_pairs(const struct torus *t)
{
    uint32_t line = 0;
    unsigned pairs = 0;

    for (unsigned i = 0; i < t->dims; i++) {
        pairs += t->wrap[i] && t->size[i] == 2;
        line = t->wrap[i] ? line : t->size[i];
    }
    return pairs + 1 == t->dims ? line : 0;
}

static void check(const struct torus *t)
{
    const uint32_t load = stated(t), line = line_among_pairs(t);
    unsigned rings = 0;
    char text[TORUS_TEXT_SIZE];

    for (unsigned i = 0; i < t->dims; i++)
        rings += t->wrap[i];
    const uint32_t links = t->dims + rings, share = (t->nodes - 1 + links - 1) / links;
    assert_int_equal(load, line > 0 && line - 1 > share ? line - 1 : share);
    if (least(t) != load)
        fail_msg("%s: %u, not %u", torus_format(t, text), least(t), load);
    if (rings == 0 || rings == t->dims)
        assert_true(torus_bound_broadcast(t) == (double)load);
    if (t->dims < 3)
        return;
    struct schedule_report r = contract_verify(t, "matched");
    if (r.busiest != (double)load)
        fail_msg("%s: matched %g, not %u", torus_format(t, text), r.busiest, load);
    assert_true(r.minimal);
    assert_int_equal(r.startups, torus_diameter(t));
}

/* All tori, meshes and mixtures of these sizes. */
static void check_all(unsigned dims, uint32_t largest)
{
    uint32_t shapes = 1;

    for (unsigned i = 0; i < dims; i++)
        shapes *= 2 * (largest - 1);
    for (uint32_t shape = 0; shape < shapes; shape++) {
        struct torus t = {.nodes = 1};
        uint32_t rest = shape;
        for (unsigned i = 0; i < dims; i++, rest /= 2 * (largest - 1))
            assert_int_equal(torus_append(&t, 2 + rest / 2 % (largest - 1), rest % 2 != 0, NULL),
                             0);
        check(&t);
    }
}

TEST(every_small_network)
{
    check_all(1, 20);
    check_all(2, 12);
    check_all(3, 5);
    check_all(4, 3);
}

TEST(larger_networks)
{
    static const char *const networks[] = {
        "3x5x7",     "5x6x7",    "8x8x8",       "2x3x30",      "2x2x30",   "9x9x9",
        "2mx3mx12m", "6mx6mx6m", "2x3x12m",     "2x9mx3",      "3x3x3x3",  "4x4x4x4",
        "2x3x4x5",   "5x3x5x3",  "3mx3mx3mx3m", "4mx4mx4mx4m", "3x4mx3x4m"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct torus t = contract_torus(networks[i]);
        check(&t);
    }
}

/* A table of many gates: too many sets to count. */
TEST(more_dimensions)
{
    static const char *const networks[] = {"2x2x2x2x2",       "3x2x4x2x3",     "2mx3mx2mx3mx2m",
                                           "2x2x2x2x2x2x2x2", "3x1x4x1x5x1x2", "4x3m x 2x2m x 3"};

    for (size_t i = 0; i < sizeof networks / sizeof networks[0]; i++) {
        struct torus t = contract_torus(networks[i]);
        struct schedule_report r = contract_verify(&t, "matched");
        assert_true(r.busiest == r.bound);
        assert_true(r.minimal);
    }
}

TEST(matched_refuses)
{
    contract_refused("matched", "9");
    contract_refused("matched", "4x4m");
    contract_refused("matched", "4x1x4");
    contract_refused("matched", "3 x 3 x complete:3");
}
