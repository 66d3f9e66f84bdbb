/* The lower bound with one port and single hops, against the blocks that sets of nodes have to send: a
 * search over the graph for each source finds how many nodes of the set must send a block. */
#include "tests/contract/contract.h"
#include "tests/contract/graphs.h"
#include "tests/support/cmocka.h"

/* The fewest nodes of a set that send a block on its way from `s`, to every node: a node that relays
 * or starts it counts if it is in the set, the one at the end does not. */
static void fewest_senders(const struct product *p, const bool *in_set, uint32_t s,
                           uint32_t *senders)
{
    bool changed = true;
    for (uint32_t i = 0; i < p->nodes; i++)
        senders[i] = i == s ? 0 : UINT32_MAX / 2;
    while (changed) {
        changed = false;
        for (uint32_t a = 0; a < p->nodes; a++) {
            for (uint32_t b = 0; b < p->nodes; b++) {
                if (graph_adjacent(p, a, b) && senders[a] + in_set[a] < senders[b]) {
                    senders[b] = senders[a] + in_set[a];
                    changed = true;
                }
            }
        }
    }
}

/* What the nodes of a set have to send, on average; 0 if there are none. */
static double average_sent(const struct product *p, const bool *in_set)
{
    uint32_t *senders = calloc(p->nodes, sizeof *senders);
    uint64_t sum = 0, size = 0;

    assert_non_null(senders);
    for (uint32_t s = 0; s < p->nodes; s++) {
        size += in_set[s];
        fewest_senders(p, in_set, s, senders);
        for (uint32_t d = 0; d < p->nodes; d++)
            sum += senders[d];
    }
    free(senders);
    return size > 0 ? (double)sum / (double)size : 0;
}

static uint32_t coordinate(const struct product *p, uint32_t node, unsigned dim)
{
    uint32_t below = 1;

    for (unsigned i = dim + 1; i < p->dims; i++)
        below *= p->factor[i].nodes;
    return node / below % p->factor[dim].nodes;
}

static bool is_everywhere(const struct product *p, uint32_t node, unsigned dim)
{
    return true;
}

/* In the middle layer of an array, or in one of the two. */
static bool is_in_middle(const struct product *p, uint32_t node, unsigned dim)
{
    uint32_t x = coordinate(p, node, dim), n = p->factor[dim].nodes;

    return p->factor[dim].kind == FACTOR_ARRAY && n > 2 && (x == n / 2 || x == n - 1 - n / 2);
}

static bool is_odd(const struct product *p, uint32_t node, unsigned dim)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < p->dims; i++)
        sum += coordinate(p, node, i);
    return sum % 2 != 0;
}

static bool is_no_corner(const struct product *p, uint32_t node, unsigned dim)
{
    return product_status(p, node) != product_most_status(p);
}

static bool is_even_and_no_corner(const struct product *p, uint32_t node, unsigned dim)
{
    return !is_odd(p, node, dim) && is_no_corner(p, node, dim);
}

/* What the nodes of a set have to send; no more than a2 takes. */
static double sent_by(const struct product *p,
                      bool (*is_in)(const struct product *, uint32_t, unsigned), unsigned dim)
{
    bool *set = calloc(p->nodes, sizeof *set);

    assert_non_null(set);
    for (uint32_t node = 0; node < p->nodes; node++)
        set[node] = is_in(p, node, dim);
    double sent = average_sent(p, set);
    free(set);
    assert_true(sent <= (double)product_blocks(p, PRODUCT_A2) + 1e-9);
    return sent;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The bound is what some set has to send: all nodes, the middle of an array, every second node of a
 * mesh of odd sizes, and in two dimensions all nodes but the corners, or every second one of them. */
static double largest_sent(const struct product *p)
{
    double best = sent_by(p, is_everywhere, 0);
    bool mesh = true, odd = true, wide = true;
    unsigned dims = 0;

    assert_close(best, product_average_status(p));
    for (unsigned dim = 0; dim < p->dims; dim++) {
        uint32_t n = p->factor[dim].nodes;
        best = larger(best, sent_by(p, is_in_middle, dim));
        if (n == 1)
            continue;
        dims++;
        mesh = mesh && p->factor[dim].kind == FACTOR_ARRAY;
        odd = odd && n % 2 != 0;
        wide = wide && n > 2;
    }
    if (mesh && odd)
        best = larger(best, sent_by(p, is_odd, 0));
    if (mesh && wide && dims == 2)
        best = larger(best, sent_by(p, is_no_corner, 0));
    if (mesh && odd && dims == 2)
        best = larger(best, sent_by(p, is_even_and_no_corner, 0));
    return best;
}

TEST(bound_of_meshes)
{
    static const char *const meshes[] = {"array:2",
                                         "array:3",
                                         "array:8",
                                         "array:9",
                                         "array:2 x array:2",
                                         "array:2 x array:4",
                                         "array:2 x array:5",
                                         "array:2 x array:6",
                                         "array:3 x array:3",
                                         "array:3 x array:4",
                                         "array:3 x array:5",
                                         "array:3 x array:9",
                                         "array:4 x array:4",
                                         "array:4 x array:5",
                                         "array:5 x array:5",
                                         "array:5 x array:7",
                                         "array:7 x array:7",
                                         "array:9 x array:7",
                                         "array:9 x array:2",
                                         "ring:4 x array:5",
                                         "ring:4 x array:6",
                                         "ring:3 x array:3",
                                         "complete:3 x array:4",
                                         "complete:5 x array:6",
                                         "array:3^3",
                                         "array:3^2 x array:5",
                                         "array:1 x array:4 x array:3",
                                         "ring:1 x array:6",
                                         "array:2^2 x array:4",
                                         "array:5 x ring:1 x array:3"};

    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        struct product p = graph_parse(meshes[i]);
        assert_close(product_bound_single_hops(&p),
                     larger(largest_sent(&p), product_bound_all_port(&p)));
    }
}

/* On an odd number of nodes every second node has more to send than the average: on 3x3 the four
 * nodes between the corners send half of all hops. */
TEST(bounds_of_odd_meshes)
{
    static const struct {
        const char *mesh;
        double bound;
    } known[] = {{"array:3^2", 18},          {"array:5^2", 1780 / 21.0},
                 {"array:7^2", 4948 / 21.0}, {"array:5 x array:7", 2008 / 14.0},
                 {"array:3^3", 1944 / 26.0}, {"array:3 x array:7", 74}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct product p = graph_parse(known[i].mesh);
        assert_close(product_bound_single_hops(&p), known[i].bound);
    }
}

/* On a single array no schedule takes less than a2. */
TEST(arrays_are_optimal)
{
    for (uint32_t n = 1; n <= 40; n++) {
        struct product p = {.dims = 1, .factor = {{.kind = FACTOR_ARRAY, .nodes = n}}, .nodes = n};
        assert_int_equal(product_blocks(&p, PRODUCT_A2), (n * n - 1) / 2);
        assert_close(product_bound_single_hops(&p), (n * n - 1) / 2);
    }
}
