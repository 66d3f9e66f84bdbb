/* The one-port algorithms: what every algorithm promises, including the one-port rule, and the
 * figures of Liu, Gu, Ren, Xiong: Efficient and Scalable Algorithms for All-to-All Personalized
 * Communication on Multidimensional Tori. */
#include "client/theory/formula.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/contract/contract.h"
#include "tests/support/cmocka.h"

TEST(ar1_every_rectangle)
{
    contract_every_rectangle("ar1", 2 * LARGEST - 1);
}

static void check_shapes(const char *name, const char *const *shapes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct torus t = contract_torus(shapes[i]);
        contract_check(&t, algorithm_find(name));
    }
}

TEST(at2_1port_every_rectangle)
{
    contract_every_rectangle("at2-1port", LARGEST * LARGEST);
}

TEST(pt_every_rectangle)
{
    contract_every_rectangle("pt", LARGEST * LARGEST);
}

TEST(mt_every_rectangle)
{
    contract_every_rectangle("mt", LARGEST * LARGEST);
}

TEST(ar1_other_shapes)
{
    static const char *const shapes[] = {"1", "2", "3", "40", "41", "1x1x10x1", "1mx6", "1m"};

    check_shapes("ar1", shapes, sizeof shapes / sizeof shapes[0]);
}

TEST(pt_other_shapes)
{
    static const char *const shapes[] = {
        "1",       "2",       "9",       "12",       "1mx4x1",         "4x1x1x8",
        "2x2x2x2", "2x3x4x5", "4x4x4x4", "5x3x1mx1", "2x2x2x2x2x2x2x2"};

    check_shapes("pt", shapes, sizeof shapes / sizeof shapes[0]);
}

TEST(mt_other_shapes)
{
    static const char *const shapes[] = {"1",     "2",       "9",       "12",       "1mx6x1x3",
                                         "2x2x2", "3x4x5",   "5x5x5",   "6x6x6",    "6x12x6",
                                         "7x1x8", "4x4x4x4", "3x2x3x4", "2x2x3x2x2"};

    check_shapes("mt", shapes, sizeof shapes / sizeof shapes[0]);
}

/* The verifier trusts the period, and follows only the routes of one node of each class. */
TEST(periods_of_large_tori)
{
    struct torus cube = contract_torus("12x12x12"), four = contract_torus("8x8x8x16");

    contract_check_period(&cube, algorithm_find("mt"), 131);
    contract_check_period(&four, algorithm_find("pt"), 5003);
    contract_check_period(&four, algorithm_find("mt"), 5003);
}

TEST(refusals_say_what_is_taken)
{
    static const struct {
        const char *algorithm, *torus;
    } refused[] = {{"ar1", "4x4"},     {"ar1", "5m"},          {"ar1", "1x5m"},
                   {"at2-1port", "8"}, {"at2-1port", "4x4x4"}, {"at2-1port", "4x8m"},
                   {"pt", "6x6x6"},    {"pt", "8x8x8x8m"},     {"mt", "6x6mx6"}};

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        contract_refused(refused[i].algorithm, refused[i].torus);
}

/* Section 3: ceil(p/4) + 1 startups, floor(p^2/8) + p/2 blocks, no contention, shortest paths. */
TEST(ar1_figures)
{
    for (uint32_t p = 4; p <= 40; p += 2) {
        struct torus t = contract_rectangle(1, p);
        struct schedule_report r = contract_verify(&t, "ar1");
        assert_int_equal(r.startups, (p + 3) / 4 + 1);
        contract_check_no_gaps(&t, "ar1");
        assert_int_equal(r.transmission, p * p / 8 + p / 2);
        assert_int_equal(r.critical_path, r.transmission);
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.one_port_kept);
        assert_true(r.minimal);
    }
}

/* An odd ring is padded by one node, and each of its steps is divided in two. */
TEST(ar1_odd_figures)
{
    for (uint32_t p = 3; p <= 41; p += 2) {
        struct torus t = contract_rectangle(1, p);
        struct schedule_report r = contract_verify(&t, "ar1");
        assert_int_equal(r.startups, 2 * ((p + 4) / 4 + 1));
        assert_true(r.transmission <= 2 * ((p + 1) * (p + 1) / 8 + (p + 1) / 2));
        assert_int_equal(r.contended_steps, 0);
        assert_true(r.one_port_kept);
    }
}

/* All sizes are multiples of 2k. The paper's formula is always the critical path, and the lockstep
 * cost too if all rings have the same size. On logical rings of two a round has one step less. */
static void check_formula(const struct torus *t, const char *name)
{
    struct schedule_report r = contract_verify(t, name);
    struct cost_counts formula;
    uint32_t longest = 0, empty;

    for (unsigned i = 0; i < t->dims; i++)
        longest = t->size[i] > longest ? t->size[i] : longest;
    empty = longest == 2 * t->dims ? t->dims : 0;
    assert_int_equal(formula_counts(formula_find(name), t, &formula, NULL), 0);
    assert_true(r.startups + empty == formula.startups);
    assert_true((double)r.critical_path == formula.transmission);
    assert_true(r.one_port_kept);
    assert_int_equal(r.contended_steps, 0);
}

/* Section 4. If the larger size is an odd multiple of four and the smaller one an even multiple,
 * the last swaps of the smaller rings are r blocks longer than those of the larger ones, twice. */
TEST(at2_1port_figures)
{
    for (uint32_t a = 4; a <= 24; a += 4) {
        for (uint32_t b = 4; b <= 24; b += 4) {
            struct torus t = contract_rectangle(a, b);
            struct schedule_report r = contract_verify(&t, "at2-1port");
            uint32_t rows = a < b ? a : b, columns = a < b ? b : a;
            uint32_t uneven = columns % 8 != 0 && rows % 8 == 0 ? 4 * rows : 0;
            check_formula(&t, "at2-1port");
            check_formula(&t, "pt");
            check_formula(&t, "mt");
            contract_check_no_gaps(&t, "at2-1port");
            assert_int_equal(r.transmission,
                             4 * rows * (columns * columns / 32) + 2 * rows * columns + uneven);
        }
    }
}

TEST(formulas_of_more_dimensions)
{
    static const struct {
        const char *algorithm, *torus;
    } cases[] = {{"mt", "6x6x6"},   {"mt", "6x6x12"},  {"mt", "12x6x18"}, {"mt", "12x12x12"},
                 {"mt", "18x6x18"}, {"mt", "8x8x8x8"}, {"pt", "8x8x8x8"}, {"pt", "8x16x8x8"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct torus t = contract_torus(cases[i].torus);
        check_formula(&t, cases[i].algorithm);
    }
}

/* Figures from enumeration. */
TEST(examples)
{
    static const struct {
        const char *algorithm, *torus;
        uint32_t startups;
        uint64_t transmission;
    } figures[] = {
        {"ar1", "2", 1, 1},
        {"ar1", "4", 2, 4},
        {"ar1", "6", 3, 7},
        {"ar1", "12", 4, 24},
        {"ar1", "20", 6, 60},
        {"at2-1port", "2x2", 2, 4},
        {"at2-1port", "4x4", 4, 32},
        {"at2-1port", "8x8", 6, 192},
        {"at2-1port", "8x12", 8, 352},
        {"at2-1port", "16x16", 8, 1024},
        {"at2-1port", "32x32", 12, 6144},
        {"pt", "2x2x2x2", 4, 32},
        {"pt", "4x4x4x4", 16, 2048},
        {"pt", "8x8x8x8", 12, 24576},
        {"mt", "6x6x6", 9, 756},
        {"mt", "12x12x12", 12, 8640},
        {"mt", "4x4x4x4", 16, 2048},
        {"mt", "8x8x8x8", 16, 24576},
    };

    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        struct torus t = contract_torus(figures[i].torus);
        struct schedule_report r = contract_verify(&t, figures[i].algorithm);
        assert_int_equal(r.startups, figures[i].startups);
        assert_int_equal(r.transmission, figures[i].transmission);
    }
}

/* Table 1, as printed; for 2^d x 2^d the form of AT2 in section 6. */
TEST(printed_formulas)
{
    static const struct {
        const char *algorithm, *torus;
        double startups, transmission;
    } rows[] = {
        {"at2-1port", "8x16", 8, 512},
        {"suh-shin", "8x16", 10, 640},
        {"suh-yalamanchili", "16x16", 9, 2176},
        {"suh-shin", "8x8x8x8", 12, 24576},
        {"pt", "8x8x8x8", 16, 24576},
        {"pt-recurrence", "8x8x8x8", 16, 24576},
        {"mt", "6x6x6", 12, 756},
        {"mt", "12x12x12", 12, 8640},
        {"suh-shin", "12x12x12", 12, 10368},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct torus t = contract_torus(rows[i].torus);
        struct cost_counts c;
        assert_int_equal(formula_counts(formula_find(rows[i].algorithm), &t, &c, NULL), 0);
        assert_true(c.startups == rows[i].startups);
        assert_true(c.transmission == rows[i].transmission);
    }
    for (unsigned d = 3; d <= 7; d++) {
        struct torus t = contract_rectangle(1u << d, 1u << d);
        struct cost_counts c;
        assert_int_equal(formula_counts(formula_find("at2-1port"), &t, &c, NULL), 0);
        assert_true(c.startups == (1u << (d - 2)) + 4);
        assert_true(c.transmission == (1u << (3 * d - 3)) + (1u << (2 * d + 1)));
    }
}

/* The closed form of section 5.1 and its recurrence differ from eight dimensions on. */
TEST(closed_form_and_recurrence)
{
    const double nodes = 4294967296; /* 16^8 */

    for (unsigned k = 1; k <= 4; k *= 2) {
        struct cost_counts closed = formula_pt_counts(k, 16 * k, 1e6);
        struct cost_counts recurrence = formula_pt_recurrence_counts(k, 16 * k, 1e6);
        assert_true(closed.startups == recurrence.startups);
        assert_true(closed.transmission == recurrence.transmission);
    }
    assert_true(formula_pt_counts(8, 16, nodes).startups == 40);
    assert_true(formula_pt_recurrence_counts(8, 16, nodes).startups == 40);
    assert_true(formula_pt_counts(8, 16, nodes).transmission == 20 * nodes);
    assert_true(formula_pt_recurrence_counts(8, 16, nodes).transmission == 16 * nodes);
    assert_true(formula_mt_counts(8, 16, nodes).startups == 72);
}
