/* a1 and a2 on products with stars, trees and other graphs: the messages of the paper's Fig. 3 and 4 in
 * the order of their lines, corollary 2, and the bounds. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "daemon/lib/schedule/graph/graph_exchange.h"
#include "daemon/lib/schedule/product.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

static const char *const networks[] = {
    "star:5",
    "star:4 x 5",
    "5 x star:4",
    "tree:2^2 x 3m",
    "4m x tree:2^1",
    "star:3 x complete:4",
    "tree:2^1 x star:4",
    "star:3 x 2m x tree:2^1",
    "complete:3 x tree:2^2",
    "4 x star:3 x 3",
};
#define NETWORKS (sizeof networks / sizeof networks[0])

static struct torus with_random_graph(void)
{
    static const uint32_t edge[] = {0, 1, 1, 2, 2, 3, 3, 4, 4, 0, 0, 2, 4, 5, 5, 6, 6, 1};
    struct torus t = {.nodes = 1};
    struct error e;

    assert_int_equal(torus_append(&t, 3, true, NULL), 0);
    assert_int_equal(torus_append(&t, 0, false, graph_of_edges(edge, 9, &e)), 0);
    return t;
}

/* Steps of the exchange in one dimension, by the numbers of the paper's section 4 and of
 * test_graph_exchange.c. */
static uint32_t steps_of(const struct torus *t, unsigned dim)
{
    uint32_t n = t->size[dim];

    if (t->graph[dim] != NULL && t->graph[dim]->kind != GRAPH_KIND_COMPLETE)
        return graph_exchange(t->graph[dim], GRAPH_ONE_PORT)->steps;
    if (t->graph[dim] != NULL || t->wrap[dim] || n <= 2)
        return n - 1;
    return 2 * (n - 1) + (n % 2 == 0);
}

static uint64_t blocks_of(const struct torus *t, unsigned dim)
{
    uint64_t n = t->size[dim];

    if (t->graph[dim] != NULL)
        return steps_of(t, dim);
    return t->wrap[dim] ? n * n / 4 : (n * n - 1) / 2;
}

/* ---- A2 -------------------------------------------------------------------------------------- */

/* Fig. 4, for every pair of dimensions before it and itself: all blocks move within the last dimension,
 * then within the one before it, and so on; in each one a total exchange for every choice of the other
 * coordinates of source and destination. So the part of a route in a dimension must be the same
 * for all blocks with these two coordinates there. */
static void check_a2(const struct torus *t)
{
    const struct algorithm *a2 = algorithm_find("a2");
    struct schedule_report r = contract_verify(t, "a2");
    uint32_t begin[TORUS_MAX_DIMS], from[TORUS_MAX_DIMS], to[TORUS_MAX_DIMS], startups = 0;
    uint64_t blocks = 0;

    for (unsigned i = t->dims; i-- > 0; startups += steps_of(t, i)) {
        begin[i] = startups;
        blocks += t->nodes / t->size[i] * blocks_of(t, i);
    }
    assert_int_equal(r.startups, startups);
    assert_int_equal(r.transmission, blocks); /* corollary 2 */
    assert_true((double)r.transmission >= r.bound);
    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64], part[64];
            uint32_t count = s == d ? 0 : algorithm_route(a2, t, s, d, 0, legs), leg = 0;
            torus_coordinates(t, s, from);
            torus_coordinates(t, d, to);
            for (unsigned i = t->dims; i-- > 0;) {
                uint32_t at[TORUS_MAX_DIMS] = {0}, other[TORUS_MAX_DIMS] = {0};
                at[i] = from[i];
                other[i] = to[i];
                if (from[i] == to[i])
                    continue;
                uint32_t hops =
                    algorithm_route(a2, t, torus_rank(t, at), torus_rank(t, other), 0, part);
                assert_int_equal(hops, torus_dim_distance(t, i, from[i], to[i]));
                for (uint32_t k = 0; k < hops; k++, leg++) {
                    assert_int_equal(legs[leg].dim, i);
                    assert_int_equal(legs[leg].step, part[k].step);
                    assert_int_equal(legs[leg].direction, part[k].direction);
                    assert_in_range(legs[leg].step, begin[i], begin[i] + steps_of(t, i) - 1);
                }
            }
            assert_int_equal(leg, count);
        }
}

TEST(a2_is_the_papers)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = contract_torus(networks[i]);
        contract_check(&t, algorithm_find("a2"));
        contract_check_no_gaps(&t, "a2");
        check_a2(&t);
    }
    struct torus t = with_random_graph();
    contract_check(&t, algorithm_find("a2"));
    check_a2(&t);
}

/* ---- A1 -------------------------------------------------------------------------------------- */

/* The steps of A1 in the first `dims` dimensions: lines 1 to 4 take a step for each hop of each message
 * in the last of them, lines 5 to 7 as many exchanges in the others as it has nodes. */
static uint32_t a1_steps(const struct torus *t, unsigned dims)
{
    uint32_t hops = 0, n = t->size[dims - 1];

    if (dims == 1)
        return steps_of(t, 0);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < n; k++)
            hops += torus_dim_distance(t, dims - 1, j, k);
    return hops + n * a1_steps(t, dims - 1);
}

/* Fig. 3, improved: in B, u_0 sends to u_0, u_1 ... one message after the other, then u_1 does. Then
 * exchange j within the copies of A moves the blocks that come from copy j. */
static void check_a1(const struct torus *t)
{
    const struct algorithm *a1 = algorithm_find("a1");
    unsigned b = t->dims - 1;
    uint32_t n = t->size[b], begin = 0, all = a1_steps(t, t->dims);
    uint32_t *of = calloc((size_t)n * n, sizeof *of), within = a1_steps(t, b);

    assert_non_null(of);
    assert_int_equal(contract_verify(t, "a1").startups, all);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t k = 0; k < n; k++) {
            of[j * n + k] = begin;
            begin += torus_dim_distance(t, b, j, k);
        }
    for (uint32_t s = 0; s < t->nodes; s++)
        for (uint32_t d = 0; d < t->nodes; d++) {
            struct leg legs[64];
            uint32_t count = s == d ? 0 : algorithm_route(a1, t, s, d, 0, legs), leg = 0;
            uint32_t j = s % n, k = d % n, hops = torus_dim_distance(t, b, j, k);
            for (; leg < count && legs[leg].dim == b; leg++)
                assert_int_equal(legs[leg].step, of[j * n + k] + leg);
            assert_int_equal(leg, hops);
            for (; leg < count; leg++) {
                assert_true(legs[leg].dim < b);
                assert_in_range(legs[leg].step, begin + j * within, begin + (j + 1) * within - 1);
            }
        }
    free(of);
}

TEST(a1_is_the_papers)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = contract_torus(networks[i]);
        contract_check(&t, algorithm_find("a1"));
        if (t.dims > 1)
            check_a1(&t);
    }
    struct torus t = with_random_graph();
    contract_check(&t, algorithm_find("a1"));
    check_a1(&t);
}

/* ---- Statuses and bounds --------------------------------------------------------------------- */

/* Theorem 1 and corollary 1, against the sums of all distances. */
TEST(statuses)
{
    for (size_t i = 0; i < NETWORKS; i++) {
        struct torus t = contract_torus(networks[i]);
        struct product p = product_of_torus(&t);
        uint64_t all = 0, least = UINT64_MAX, most = 0;
        for (uint32_t a = 0; a < t.nodes; a++) {
            uint64_t status = 0;
            for (uint32_t b = 0; b < t.nodes; b++) {
                status += torus_distance(&t, a, b);
                assert_int_equal(product_distance(&p, a, b), torus_distance(&t, a, b));
            }
            assert_int_equal(product_status(&p, a), status);
            all += status;
            least = status < least ? status : least;
            most = status > most ? status : most;
        }
        double difference = product_average_status(&p) * t.nodes - (double)all;
        assert_true(difference < 1e-6 && difference > -1e-6);
        assert_int_equal(product_least_status(&p), least);
        assert_int_equal(product_most_status(&p), most);
        assert_int_equal(product_diameter(&p), torus_diameter(&t));
        assert_true(product_bound_all_port(&p) == torus_bound_all_port(&t));
    }
}

/* A star or a tree alone attains the bound: its middle relays, and nothing takes less. */
TEST(optimal)
{
    static const struct {
        const char *network;
        uint32_t blocks;
    } known[] = {
        {"star:3", 4}, {"star:5", 16}, {"star:9", 64}, {"tree:2^2", 24}, {"tree:3^2", 108}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].network);
        struct schedule_report r = contract_verify(&t, "a2");
        assert_int_equal(r.transmission, known[i].blocks);
        assert_true((double)r.transmission == r.bound);
    }
}

TEST(too_large)
{
    contract_refused("a1", "tree:2^8");
    contract_refused("a2", "tree:2^8");
    contract_refused("a3", "tree:2^8");
}
