/* squares against section 4.A of Liu, Gu, Bi, Tu, Dong: Optimal All-to-All Personalized
 * Communication in All-Port Tori, written out independently, with AR1 (printed.h) in part 2. */
#include "client/theory/formula.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/contract/printed.h"
#include "tests/support/cmocka.h"

TEST(every_rectangle)
{
    contract_every_rectangle("squares", LARGEST / 4 * LARGEST / 4);
}

/* All four nodes of a square have the same halved coordinates. In part 1 each of them sends, in
 * each dimension, the blocks for the other two groups. */
static struct block printed(const struct torus *t, int source, int destination)
{
    int c = (int)t->size[1], longest = (int)(t->size[0] > t->size[1] ? t->size[0] : t->size[1]);
    uint32_t ring = longest == 4 ? 1 : (uint32_t)(longest / 2 + 3) / 4 + 1;
    struct block b = {.size = {(int)t->size[0], c},
                      .at = {source / c, source % c},
                      .to = {destination / c, destination % c}};

    for (unsigned dim = 0; dim < 2; dim++) {
        int square = b.at[dim] / 2, wanted = 2 * square + b.to[dim] % 2;
        if (b.at[dim] != wanted)
            send(&b, dim, dim, wanted - b.at[dim]);
        assert_int_equal(b.at[dim] / 2, square);
    }
    bool g00 = b.at[0] % 2 == 0 && b.at[1] % 2 == 0, g11 = b.at[0] % 2 == 1 && b.at[1] % 2 == 1;
    unsigned first = g00 || g11 ? 1 : 0;
    run_ar1(&b, first, 2, 2, 2 + ring - 1);
    run_ar1(&b, 1 - first, 2, 2 + ring, 2 + 2 * ring - 1);
    return b;
}

TEST(is_section_4_a)
{
    static const char *const tori[] = {"4x4",  "8x8",   "4x12",  "12x8",
                                       "8x16", "12x12", "16x20", "32x32"};
    const struct algorithm *a = algorithm_find("squares");

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++) {
        struct torus t = contract_torus(tori[i]);
        for (uint32_t s = 0; s < t.nodes; s++) {
            for (uint32_t d = 0; d < t.nodes; d++) {
                struct leg legs[MOST_LEGS];
                if (s == d)
                    continue;
                struct block b = printed(&t, (int)s, (int)d);
                uint32_t count = algorithm_route(a, &t, s, d, 0, legs);
                assert_int_equal(count, b.legs);
                for (uint32_t k = 0; k < count; k++) {
                    assert_int_equal(legs[k].step, b.leg[k].step);
                    assert_int_equal(legs[k].dim, b.leg[k].dim);
                    assert_int_equal(legs[k].hops, b.leg[k].hops);
                    assert_int_equal(legs[k].direction, b.leg[k].direction);
                }
            }
        }
    }
}

/* The formula is always the critical path. It is the lockstep cost too, unless the larger size is
 * an odd multiple of four and the smaller one an even multiple (see at2_1port_figures() in
 * test_one_port.c). */
TEST(figures)
{
    for (uint32_t a = 4; a <= 24; a += 4) {
        for (uint32_t b = 4; b <= 24; b += 4) {
            struct torus t = contract_rectangle(a, b);
            struct schedule_report r = contract_verify(&t, "squares");
            uint32_t rows = a < b ? a : b, columns = a < b ? b : a;
            uint32_t uneven = columns % 8 != 0 && rows % 8 == 0 ? 4 * rows : 0;
            uint32_t blocks = 4 * rows * (columns * columns / 32) + 2 * rows * columns;
            struct cost_counts formula;

            assert_int_equal(formula_counts(formula_find("squares"), &t, &formula, NULL), 0);
            assert_int_equal(r.startups, columns == 4 ? 4 : 2 * ((columns + 7) / 8) + 4);
            assert_true(formula.startups == r.startups);
            assert_int_equal(r.critical_path, blocks);
            assert_true(formula.transmission == blocks);
            assert_int_equal(r.transmission, blocks + uneven);
            assert_int_equal(r.contended_steps, 0);
            assert_true(r.one_port_kept);
            assert_false(r.minimal); /* as the paper says */
            contract_check_no_gaps(&t, "squares");
        }
    }
}

/* Gu's main term, N*n/8 on n x n: on 2^d x 2^d there are 2^(3d-3) + 2^(2d+1) blocks. */
TEST(power_squares)
{
    for (unsigned d = 3; d <= 6; d++) {
        struct torus t = contract_rectangle(1u << d, 1u << d);
        struct schedule_report r = contract_verify(&t, "squares");
        assert_int_equal(r.transmission, (1u << (3 * d - 3)) + (1u << (2 * d + 1)));
        assert_int_equal(r.startups, (1u << (d - 2)) + 4);
    }
}

TEST(refusals)
{
    static const char *const tori[] = {"2x2", "8x6", "1x8", "8", "4x8m", "4x4x4", "5x5"};

    for (size_t i = 0; i < sizeof tori / sizeof tori[0]; i++)
        contract_refused("squares", tori[i]);
}
