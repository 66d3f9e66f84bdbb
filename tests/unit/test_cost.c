/* The cost model and the papers' formulas, against figures worked out by hand. */
#include <math.h>

#include "client/theory/formula.h"
#include "daemon/lib/schedule/algorithms/registry.h"
#include "tests/support/cmocka.h"

static struct torus parse(const char *text)
{
    struct torus t;
    struct error e;
    assert_success(torus_parse(&t, text, &e), e);
    return t;
}

static struct cost find(const char *torus, const char *name)
{
    struct torus t = parse(torus);
    struct error e;
    struct cost c;
    assert_success(cost_find(&t, name, NULL, &c, &e), e);
    return c;
}

static void check_counts(struct cost_counts c, double startups, double transmission,
                         double rearranged)
{
    assert_true(c.startups == startups);
    assert_true(c.transmission == transmission);
    assert_true(c.rearranged == rearranged);
}

/* ---- Formulas -------------------------------------------------------------------------------- */

struct row {
    const char *torus, *algorithm;
    double startups, transmission, rearranged;
};

/* Liu et al., All-Port Tori, Table II, for d = 2, 3, 4 and 7; [5], [6] (12 blocks for d = 2, fewer
 * than one port can receive), [10], proposed. */
TEST(table_two)
{
    static const struct row rows[] = {
        {"4x4", "tseng", 4, 32, 48},
        {"4x4", "suh-shin", 4, 32, 48},
        {"4x4", "at2", 4, 8, 48},
        {"8x8", "tseng", 6, 192, 320},
        {"8x8", "suh-yalamanchili", 6, 192, 192},
        {"8x8", "suh-shin", 6, 192, 192},
        {"8x8", "at2", 6, 64, 192},
        {"16x16", "tseng", 10, 1280, 2304},
        {"16x16", "suh-yalamanchili", 9, 2176, 2176},
        {"16x16", "suh-shin", 10, 1280, 768},
        {"16x16", "at2", 10, 512, 768},
        {"128x128", "tseng", 66, 540672, 1064960},
        {"128x128", "suh-yalamanchili", 18, 1318912, 1318912},
        {"128x128", "suh-shin", 66, 540672, 49152},
        {"128x128", "at2", 66, 262144, 49152},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct cost c = find(rows[i].torus, rows[i].algorithm);
        assert_true(c.has_formula);
        check_counts(c.formula, rows[i].startups, rows[i].transmission, rows[i].rearranged);
        /* The enumerated counts are the same on squares. */
        check_counts(c.counts, rows[i].startups, rows[i].transmission, rows[i].rearranged);
        assert_int_equal(c.from, algorithm_find(rows[i].algorithm) != NULL ? COST_ENUMERATED
                                                                           : COST_BY_FORMULA);
    }
}

/* Lemma 2, Suh and Shin's formula in other shapes, and section 1's direct exchange, of which the
 * sizes up to 32x32 are enumerated: 2^(3d-3) of both. */
TEST(other_formulas)
{
    check_counts(find("6", "ar").formula, 3, 5, 0);
    check_counts(find("20", "ar").formula, 10, 50, 0);
    check_counts(find("8x12", "suh-shin").counts, 8, 8 * 144 / 4 + 96, 3 * 96);
    check_counts(find("4x8x12", "suh-shin").counts, 12, (4.5 + 1.5) * 384, 0);
    for (unsigned d = 2; d <= 7; d++) {
        char square[32];
        snprintf(square, sizeof square, "%ux%u", 1u << d, 1u << d);
        struct cost c = find(square, "tseng-gupta");
        check_counts(c.counts, 1u << (3 * d - 3), 1u << (3 * d - 3), 0);
        check_counts(c.formula, 1u << (3 * d - 3), 1u << (3 * d - 3), 0);
        assert_int_equal(c.from, d <= 5 ? COST_ENUMERATED : COST_BY_FORMULA);
    }
}

/* Yang and Wang, Comparisons: one startup, two, and 2*log5(n^2); with delta and L*gamma for tp and
 * the time of a block. */
TEST(broadcast_formulas)
{
    const struct cost_parameters slow_switch = {.ts = 100, .tw = 1, .tp = 10};
    const struct cost_parameters fast_switch = {.ts = 100, .tw = 1, .tp = 3};
    struct cost_counts ours = find("5x5", "yangwang").formula;
    struct cost_counts rows_first = find("5x5", "saadschultz").formula;
    struct cost_counts recursive = find("5x5", "calvin").counts;

    check_counts(ours, 1, 6, 0);
    assert_true(cost_price(&ours, &fast_switch, 5).total == 100 + 2 * 3 + 6 * 5);
    assert_true(cost_price(&ours, &slow_switch, 5).total == 100 + 2 * 5 + 6 * 10);
    check_counts(rows_first, 2, 12, 0);
    assert_true(cost_price(&rows_first, &slow_switch, 5).total == 200 + 4 * 10 + 12 * 5);
    assert_true(fabs(recursive.startups - 4) < 1e-9);
    assert_true(recursive.transmission == 12 && recursive.hops == 6);
    /* The schedule that runs here counts one startup per phase. */
    check_counts(find("5x5", "yangwang").counts, 4, 6, 0);
    check_counts(find("5x5", "saadschultz").counts, 4, 12, 0);
}

/* If a formula covers all tori of an algorithm, it gives the counted values, and also values for tori that are too
 * large to count. */
TEST(formulas_of_products)
{
    static const char *const algorithms[] = {"a2", "a3", "cccube"};
    static const char *const tori[] = {"1",     "2",     "8",         "9",       "9m",
                                       "2x2",   "4x4",   "8x8",       "5x5",     "6mx6m",
                                       "4x8m",  "2x16",  "16x16",     "6x6x6",   "3x4x5",
                                       "8x4x2", "2x2x2", "4mx4x2mx2", "4x4x4x4", "3mx3mx3mx3m"};
    unsigned covered = 0;

    for (size_t i = 0; i < sizeof algorithms / sizeof algorithms[0]; i++) {
        for (size_t j = 0; j < sizeof tori / sizeof tori[0]; j++) {
            struct torus t = parse(tori[j]);
            if (algorithm_accepts(algorithm_find(algorithms[i]), &t, NULL) != 0)
                continue;
            struct cost c = find(tori[j], algorithms[i]);
            assert_true(c.has_formula);
            assert_int_equal(c.from, COST_ENUMERATED);
            check_counts(c.formula, c.counts.startups, c.counts.transmission, 0);
            assert_true(c.formula.hops == c.counts.hops);
            covered++;
        }
        assert_true(find("1024x1024", algorithms[i]).has_formula);
    }
    assert_int_equal(covered, 53);
}

/* A formula has the name of its algorithm, and both have the same number of ports. */
TEST(formulas_belong_to_algorithms)
{
    for (size_t i = 0; i < formula_count(); i++) {
        const struct formula *f = formula_at(i);
        const struct algorithm *a = algorithm_find(f->algorithm);
        assert_ptr_equal(formula_find(f->algorithm), f);
        if (a != NULL)
            assert_true(f->port_model == a->port_model && f->operation == a->operation);
    }
    assert_null(formula_at(formula_count()));
    assert_null(formula_find("nothing"));
    assert_string_equal(schedule_operation_name(OPERATION_ALLGATHER), "allgather");
}

TEST(formulas_refuse_other_tori)
{
    static const struct {
        const char *formula, *torus;
    } refused[] = {
        {"tseng", "8x12"},
        {"tseng", "8x8x8"},
        {"tseng", "12x12"},
        {"tseng", "2x2"},
        {"suh-shin", "8x6"},
        {"suh-shin", "8x8m"},
        {"suh-shin", "16"},
        {"at2", "6x8"},
        {"ar", "5"},
        {"ar", "2"},
        {"ar", "8m"},
        {"ar", "4x4"},
        {"at2", "8x8x8"},
        {"at2", "1x8"},
        {"suh-yalamanchili", "8x16"},
        {"yangwang", "4x4"},
        {"yangwang", "5x7"},
        {"at2-printed", "12x12"},
        {"tseng-gupta", "2x2"},
        {"tseng-gupta", "8x16"},
        {"tseng-gupta", "12x12"},
        {"tseng-gupta", "8x8m"},
        {"tseng-gupta", "8x8x8"},
        {"suh-yalamanchili", "4x4"},
    };

    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        struct torus t = parse(refused[i].torus);
        struct cost_counts c;
        struct error e;
        assert_fails(formula_counts(formula_find(refused[i].formula), &t, &c, &e), e, ERROR_REFUSED,
                     refused[i].torus);
    }
}

/* ---- Enumeration ----------------------------------------------------------------------------- */

/* Rings of different lengths in lockstep: the formula gives the critical path. */
TEST(where_lockstep_differs)
{
    struct cost c = find("8x12", "at2");

    assert_int_equal(c.from, COST_ENUMERATED);
    check_counts(c.counts, 8, 144, 288);
    check_counts(c.formula, 8, 144, 288);
    assert_true(c.critical_path == 144);
    c = find("12x16", "at2-printed");
    check_counts(c.counts, 10, 424, 576);
    check_counts(c.formula, 10, 384, 576);
    assert_true(c.critical_path == 384);
}

/* Lemma 4 is not the cost of AT2 as printed if the larger size is 4 mod 8. */
TEST(where_a_lemma_does_not_hold)
{
    struct cost c = find("12x12", "at2-printed");

    assert_false(c.has_formula);
    check_counts(c.counts, 8, 228, 432);
}

/* Beyond the formula's sizes there is only the enumeration; the phases stay three. */
TEST(padded)
{
    struct cost c = find("6x6", "at2");

    assert_false(c.has_formula);
    assert_int_equal(c.from, COST_ENUMERATED);
    assert_true(c.counts.transmission >= 27 && c.counts.rearranged == 108);
    assert_true(find("1x8", "at2").counts.rearranged == 0);
}

/* AR on 8: one step of 1 hop, 3 of 2. Direct on 4: steps of 1, 2 and 1 hops. */
TEST(hops)
{
    assert_true(find("8", "ar").counts.hops == 7);
    assert_true(find("4", "direct").counts.hops == 4);
}

TEST(unknown_costs)
{
    struct torus large = parse("251x257"), square = parse("8x12");
    struct cost c;
    struct error e;

    assert_false(cost_can_enumerate(&large, algorithm_find("at2")));
    assert_fails(cost_find(&large, "at2", NULL, &c, &e), e, ERROR_REFUSED, "");
    assert_fails(cost_find(&square, "tseng", NULL, &c, &e), e, ERROR_REFUSED, "");
    assert_fails(cost_find(&square, "ar", NULL, &c, &e), e, ERROR_REFUSED, "");
    assert_fails(cost_find(&square, "tsang", NULL, &c, &e), e, ERROR_USAGE, "");
}

/* Too large to enumerate, but the formula holds. */
TEST(by_formula)
{
    struct cost c = find("1000x1000", "at2");

    assert_int_equal(c.from, COST_BY_FORMULA);
    check_counts(c.counts, 502, 1.25e8, 3e6);
    assert_string_equal(cost_origin_name(c.from), "formula");
}

/* ---- Time ------------------------------------------------------------------------------------ */

static void check_near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-6);
}

TEST(paragon)
{
    struct cost c = find("16x16", "at2");
    struct cost_time time = cost_price(&c.counts, &cost_paragon, 64);

    check_near(time.startups, 750);
    check_near(time.transmission, 360.448);
    check_near(time.rearrangement, 688.128);
    check_near(time.hops, 0);
    check_near(time.total, 1798.576);
}

TEST(every_parameter)
{
    const struct cost_counts counts = {2, 3, 5, 7, false};
    const struct cost_parameters p = {.ts = 1000, .tw = 0.5, .rho = 0.25, .tp = 11};

    check_near(cost_price(&counts, &p, 10).total, 2000 + 15 + 12.5 + 77);
    check_near(cost_price(&counts, &p, 0).total, 2000 + 77);
}

/* a + 2d + x*L where a byte takes longer than a hop, a + 2L + x*d where it does not. */
TEST(overlapped)
{
    const struct cost_counts counts = {
        .startups = 1, .transmission = 6, .hops = 2, .overlapped = true};
    const struct cost_parameters p = {.ts = 100, .tw = 1, .tp = 10};

    check_near(cost_price(&counts, &p, 30).total, 100 + 2 * 10 + 6 * 30);
    check_near(cost_price(&counts, &p, 10).total, 100 + 8 * 10);
    check_near(cost_price(&counts, &p, 4).total, 100 + 2 * 4 + 6 * 10);
}
