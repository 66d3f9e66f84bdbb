/* a3: corollary 3's time on every torus and mesh that it takes, and its optimality. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/schedule/a3.h"
#include "tests/contract/contract.h"

static struct torus cube(unsigned dims, uint32_t size, bool wrap)
{
    struct torus t = {.dims = dims, .nodes = 1};
    for (unsigned i = 0; i < dims; i++) {
        t.size[i] = size;
        t.wrap[i] = wrap;
        t.nodes *= size;
    }
    return t;
}

static void delivered(void **state)
{
    static const struct {
        unsigned dims;
        uint32_t largest;
    } sizes[] = {{1, 16}, {2, 12}, {4, 3}, {8, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t n = 1; n <= sizes[i].largest; n++) {
            for (int wrap = 0; wrap < 2; wrap++) {
                struct torus t = cube(sizes[i].dims, n, wrap);
                contract_check(&t, algorithm_find("a3"));
            }
        }
    }
    struct torus t = contract_torus("4x4x4x4");
    contract_check(&t, algorithm_find("a3"));
    contract_every_rectangle("a3", LARGEST);
}

/* Theorem 4, corollary 3: N/n exchanges of one dimension. Contention only between the array's
 * messages, and every route a shortest path. */
static void check_figures(const struct torus *t)
{
    struct schedule_report r = contract_verify(t, "a3");
    assert_int_equal(r.startups, a3_startups(t));
    assert_int_equal(r.transmission, a3_transmission(t));
    assert_true(t->size[0] == 1 || r.critical_path <= r.transmission);
    if (t->wrap[0])
        assert_int_equal(r.contended_steps, 0);
    assert_true(r.minimal);
    /* Theorem 5: as good as its single dimension. */
    if (!t->wrap[0] || t->size[0] % 2 != 0 || t->size[0] % 4 == 0)
        assert_true((double)r.transmission == r.bound);
    else
        assert_true((double)r.transmission == r.bound + 0.5 * (t->nodes / t->size[0]));
}

static void figures(void **state)
{
    (void)state;
    for (unsigned dims = 1; dims <= 8; dims *= 2) {
        for (uint32_t n = 2; n <= 16; n++) {
            for (int wrap = 0; wrap < 2; wrap++) {
                if (dims == 8 && n > 2)
                    continue; /* 2^32 nodes and more do not even have numbers */
                struct torus t = cube(dims, n, wrap);
                if (dims <= 2 || t.nodes <= 256 || (wrap && dims == 4 && n <= 8)) {
                    check_figures(&t);
                    if (t.nodes <= 256)
                        contract_check_no_gaps(&t, "a3");
                }
            }
        }
    }
}

static void named_figures(void **state)
{
    static const struct {
        const char *torus;
        uint32_t startups;
        uint64_t transmission;
    } figures_of[] = {{"2x2", 2, 2},          {"4x4", 8, 8},    {"8x8", 32, 64},
                      {"16x16", 128, 512},    {"6x6", 18, 30},  {"5x5", 10, 15},
                      {"7x7", 21, 42},        {"3x3", 3, 3},    {"4x4x4x4", 128, 128},
                      {"8mx8m", 8, 128},      {"5mx5m", 5, 30}, {"3mx3mx3mx3m", 27, 54},
                      {"8x8x8x8", 2048, 4096}};
    (void)state;
    for (size_t i = 0; i < sizeof figures_of / sizeof figures_of[0]; i++) {
        struct torus t = contract_torus(figures_of[i].torus);
        struct schedule_report r = contract_verify(&t, "a3");
        assert_int_equal(r.startups, figures_of[i].startups);
        assert_int_equal(r.transmission, figures_of[i].transmission);
    }
}

static void refusals(void **state)
{
    static const char *const refused[] = {"4x8", "4x4m", "4x4x4", "1x8", "70000m", "140000"};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused("a3", refused[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delivered),
        cmocka_unit_test(figures),
        cmocka_unit_test(named_figures),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
