/* A2: its promises on every shape, its figures, and the bound for single hops. */
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/contract/graphs.h"
#include "tests/support/cmocka.h"

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
