/* A1 against its paper: its lines carried out on sets of messages, and its figures. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/contract/graphs.h"
#include "tests/support/cmocka.h"

/* Fig. 3 with the improved lines 1 to 4, carried out on a graph A x B of two dimensions. A node is
 * v * b + u. holder[source * N + destination] is the node where a message is. */
struct literal {
    struct product p;
    uint32_t a, b;
    uint32_t *holder;
    uint32_t step;
};

/* Moves a message one hop along B from the node that holds it, towards u. */
static void move_along_b(struct literal *x, uint32_t message, uint32_t u)
{
    uint32_t at = x->holder[message], v = at / x->b, from = at % x->b;
    for (uint32_t next = 0; next < x->b; next++) {
        if (graph_linked(&x->p.factor[1], from, next) && next != from &&
            factor_distance(&x->p.factor[1], next, u) + 1 ==
                factor_distance(&x->p.factor[1], from, u)) {
            x->holder[message] = v * x->b + next;
            return;
        }
    }
    fail_msg("no way from %u to %u", from, u);
}

/* The node where the block with these walks is before step `step`. */
static uint32_t place_before(const struct product *p, uint32_t source,
                             const struct product_walk *walks, unsigned count, uint32_t step)
{
    uint32_t here = source;
    for (unsigned i = 0; i < count; i++)
        for (uint32_t hop = 0; hop < walks[i].walk.hops; hop++)
            if (walks[i].walk.step + hop < step)
                here = graph_moved(p, here, walks[i].dim, walks[i].walk.stride);
    return here;
}

/* Checks that every message is where A1 has it before the current step. */
static void compare_places(const struct literal *x)
{
    uint32_t nodes = x->p.nodes;
    for (uint32_t s = 0; s < nodes; s++) {
        for (uint32_t d = 0; d < nodes; d++) {
            struct product_walk walks[PRODUCT_MAX_DIMS];
            unsigned count = product_route(&x->p, PRODUCT_A1, s, d, walks);
            assert_int_equal(place_before(&x->p, s, walks, count, x->step),
                             x->holder[s * nodes + d]);
        }
    }
}

static void check_literal_a1(const char *text)
{
    struct literal x = {.p = graph_parse(text)};
    uint32_t nodes = x.p.nodes;

    x.a = x.p.factor[0].nodes;
    x.b = x.p.factor[1].nodes;
    x.holder = calloc((size_t)nodes * nodes, sizeof *x.holder);
    assert_non_null(x.holder);
    for (uint32_t s = 0; s < nodes; s++)
        for (uint32_t d = 0; d < nodes; d++)
            x.holder[s * nodes + d] = s;
    compare_places(&x);
    for (uint32_t j = 0; j < x.b; j++) {
        for (uint32_t k = 0; k < x.b; k++) {
            /* transfer m_(v,u_j)(*,u_k) from (v,u_j) to (v,u_k), for all v */
            for (uint32_t hop = 0; hop < factor_distance(&x.p.factor[1], j, k); hop++) {
                for (uint32_t v = 0; v < x.a; v++)
                    for (uint32_t to = 0; to < x.a; to++)
                        move_along_b(&x, (v * x.b + j) * nodes + to * x.b + k, k);
                x.step++;
                if (x.p.factor[1].kind != FACTOR_RING || x.b % 2 != 0)
                    compare_places(&x); /* otherwise two ways are shortest */
            }
        }
    }
    compare_places(&x);
    for (uint32_t k = 0; k < x.b; k++) {
        /* in A_j total exchange of messages m_(*,u_k)(*,u_j), which reside in (*,u_j) */
        for (uint32_t s = 0; s < nodes; s++)
            for (uint32_t d = 0; d < nodes; d++)
                if (s % x.b == k)
                    x.holder[s * nodes + d] = d;
        x.step += factor_steps(&x.p.factor[0]);
        compare_places(&x);
    }
    assert_int_equal(x.step, product_steps(&x.p, PRODUCT_A1));
    free(x.holder);
}

TEST(a1_is_the_papers)
{
    static const char *const pairs[] = {"ring:4 x ring:3",         "ring:3 x ring:4",
                                        "array:3 x array:5",       "array:4 x ring:5",
                                        "complete:4 x complete:5", "ring:5 x array:4",
                                        "complete:3 x ring:6",     "array:2 x complete:2"};

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        check_literal_a1(pairs[i]);
}

TEST(a1_every_shape)
{
    static const char *const shapes[] = {"1",      "2",     "9m",      "12",    "1x6x1x3", "4x4m",
                                         "5mx6",   "2x2x2", "3x4x2",   "4mx3m", "6x6",     "7mx5",
                                         "2mx2x3", "8x8",   "2x3x2x2", "16x3"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find("a1"));
        contract_check_no_gaps(&t, "a1");
    }
}

/* Blocks: n_1 over every hop of every message in B, and then n_2 exchanges in A. */
TEST(a1_figures)
{
    static const struct {
        const char *torus;
        uint32_t startups;
        uint64_t transmission;
    } known[] = {{"8", 7, 16},
                 {"4x4", 4 * 4 + 4 * 3, 4 * 4 * 4 + 4 * 4},
                 {"8x8", 8 * 16 + 8 * 7, 8 * 8 * 16 + 8 * 16},
                 {"2x2", 2 + 2, 4 + 2},
                 {"2x2x2", 2 + 2 * (2 + 2), 8 + 2 * (4 + 2)},
                 {"5mx3m", 8 + 3 * 8, 5 * 8 + 3 * 12}};

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct torus t = contract_torus(known[i].torus);
        struct schedule_report r = contract_verify(&t, "a1");
        assert_int_equal(r.startups, known[i].startups);
        assert_int_equal(r.transmission, known[i].transmission);
        assert_true(r.one_port_kept);
        assert_true(r.minimal);
        assert_int_equal(r.contended_steps, 0);
    }
}

TEST(a1_refusals)
{
    struct torus longest = contract_torus("2x322"), ring = contract_torus("1048576");

    assert_int_equal(algorithm_accepts(algorithm_find("a1"), &longest, NULL), 0);
    assert_int_equal(algorithm_accepts(algorithm_find("a1"), &ring, NULL), 0);
    contract_refused("a1", "2x323");
    contract_refused("a1", "1024x1024");
}

/* A2: its promises on every shape, its figures, and the bound for single hops. */

TEST(a2_every_rectangle)
{
    contract_every_rectangle("a2", LARGEST * LARGEST);
}

TEST(a2_other_shapes)
{
    static const char *const shapes[] = {
        "1",     "2m",      "9m",      "4x4m",        "12mx12m",
        "5mx6",  "2x2x2",   "3x4x5",   "4mx3x5m",     "1x6x1x3",
        "6x6x6", "6mx6x6m", "4x4x4x4", "3mx3mx3mx3m", "2x2x2x2x2x2x2mx2"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find("a2"));
    }
}

/* Corollary 2 with the times of rings, and theorem 3: startups are the sum of n_i - 1, blocks the
 * average status. */
TEST(a2_figures)
{
    static const char *const tori[] = {"2",       "5",       "12",          "4x4",     "8x8",
                                       "7x5",     "12x12",   "6x6x6",       "3x4x5",   "12x12x12",
                                       "4x4x4x4", "8x8x8x8", "2x2x2x2x2x2", "128x128", "1x7x1"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct product p = product_of_torus(&t);
        struct schedule_report r = contract_verify(&t, "a2");
        uint32_t startups = 0;
        uint64_t transmission = 0;
        for (unsigned j = 0; j < t.dims; j++) {
            startups += t.size[j] - 1;
            transmission += t.nodes / t.size[j] * (t.size[j] * t.size[j] / 4);
        }
        assert_int_equal(r.startups, startups);
        assert_int_equal(r.transmission, transmission);
        assert_int_equal(r.critical_path, transmission);
        assert_close(product_bound_single_hops(&p), (double)transmission);
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
        if (t.nodes < 2048)
            contract_check_no_gaps(&t, "a2");
    }
}

TEST(a2_mesh_figures)
{
    static const char *const meshes[] = {"2m",    "3m",   "8m",     "9m",      "4mx4m",
                                         "5mx5m", "8mx3", "12mx12", "4mx4mx4m"};

    for (size_t i = 0; i < sizeof meshes / sizeof meshes[0]; i++) {
        struct torus t = contract_torus(meshes[i]);
        struct product p = product_of_torus(&t);
        struct schedule_report r = contract_verify(&t, "a2");
        assert_int_equal(r.startups, product_steps(&p, PRODUCT_A2));
        assert_int_equal(r.transmission, product_blocks(&p, PRODUCT_A2));
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.minimal);
        contract_check_no_gaps(&t, "a2");
    }
}

/* The bound of a2 counts all hops of all blocks, and has a name that says so; other one-port
 * algorithms relay at no cost. */
TEST(bound_of_a2)
{
    static const char *const tori[] = {"8x8", "5x7", "4x4m", "3mx3m", "2x2x2", "1"};
    const struct algorithm *a2 = algorithm_find("a2"), *ar1 = algorithm_find("ar1");

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        struct product p = product_of_torus(&t);
        struct schedule_report r = contract_verify(&t, "a2");
        assert_close(r.bound, product_bound_single_hops(&p));
        assert_true((double)r.critical_path >= r.bound - 1e-9);
    }
    struct torus t = contract_torus("8x8");
    assert_close(algorithm_bound(a2, &t), 256); /* 2 * 8 * floor(8^2/4) */
    assert_string_equal(algorithm_bound_name(a2), "one-port, single hops");
    assert_string_equal(algorithm_bound_name(ar1), "one-port, cut-through");
    assert_string_equal(algorithm_bound_name(algorithm_find("at2")), "all-port");
    assert_string_equal(algorithm_bound_name(algorithm_find("yangwang")),
                        "all-to-all broadcast, all-port");
}
