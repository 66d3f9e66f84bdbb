/* The papers' cost model, fitted to invented times. */
#include <math.h>
#include <stdbool.h>

#include "client/cli/measuring/fit.h"
#include "tests/support/cmocka.h"

#define TS 500e-6 /* seconds a startup */
#define TW 0.4e-6 /* and a byte: 20 Mbit/s */
#define SIZES 6
#define MOST 400

static const double sizes[SIZES] = {256, 1024, 4096, 16384, 65536, 262144};

static bool near(double a, double b, double part)
{
    return fabs(a - b) <= part * fabs(b);
}

/* Exact times of a schedule with so many startups and blocks. */
static size_t make(struct fit_point *points, double startups, double blocks)
{
    for (size_t i = 0; i < SIZES; i++)
        points[i] =
            (struct fit_point){startups, blocks * sizes[i], startups * TS + blocks * sizes[i] * TW};
    return SIZES;
}

/* Uniform in -1..1, the same in every run. */
static double noise(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(*state >> 33) / (double)(UINT64_C(1) << 30) - 1;
}

TEST(exact_times_give_the_parameters_back)
{
    struct fit_point points[2 * SIZES];
    struct fit fit;
    struct error e;
    size_t count = make(points, 4, 8);

    count += make(points + count, 7, 14);
    assert_int_equal(fit_model(points, count, &fit, &e), 0);
    assert_true(near(fit.ts.value, TS, 1e-9) && near(fit.tw.value, TW, 1e-9));
    assert_true(near(fit.ts.low, TS, 1e-4) && near(fit.ts.high, TS, 1e-4));
    assert_true(near(fit.tw.low, TW, 1e-4) && near(fit.tw.high, TW, 1e-4));
    assert_true(fit.r2 > 1 - 1e-9 && fit.worst < 1e-9 && fit.median < 1e-9);
    assert_int_equal(fit.points, 2 * SIZES);
    assert_true(near(fit_seconds(&fit, &points[3]), points[3].seconds, 1e-9));
}

/* Figures worked out by hand: x = (1, 1/2, 1/4), y = (0, 1/2, 3/4) for T = 1, 2, 4 and startups 1
 * with bytes 0, 1, 3 fit exactly with ts = tw = 1; T = 5 instead of 4 gives x = (1, .5, .2),
 * y = (0, .5, .6): xx = 1.29, xy = .37, yy = .61, determinant .65, ts = (1.7*.61 - 1.1*.37) / .65,
 * tw = (1.1*1.29 - 1.7*.37) / .65. */
TEST(a_small_fit_is_as_by_hand)
{
    const struct fit_point points[] = {{1, 0, 1}, {1, 1, 2}, {1, 3, 5}};
    double ts = (1.7 * .61 - 1.1 * .37) / .65, tw = (1.1 * 1.29 - 1.7 * .37) / .65;
    double r[3] = {1 - ts, 1 - (ts + tw) / 2, 1 - (ts + 3 * tw) / 5};
    double squares = r[0] * r[0] + r[1] * r[1] + r[2] * r[2];
    struct fit fit;
    struct error e;

    assert_int_equal(fit_model(points, 3, &fit, &e), 0);
    assert_true(near(fit.ts.value, ts, 1e-12) && near(fit.tw.value, tw, 1e-12));
    /* Student's t with one degree of freedom: 12.706 standard errors. */
    assert_true(near(fit.ts.high - ts, 12.706 * sqrt(squares / .65 * .61), 1e-9));
    assert_true(near(fit.tw.high - tw, 12.706 * sqrt(squares / .65 * 1.29), 1e-9));
    /* Weights 1, 1/4, 1/25; their mean of T is 1.7 / 1.29. */
    assert_true(near(fit.r2, 1 - squares / (3 - 1.7 * 1.7 / 1.29), 1e-9));
    assert_true(near(fit.worst, fmax(fabs(r[0]), fmax(fabs(r[1]), fabs(r[2]))), 1e-9));
    assert_true(near(fit_residual(&fit, &points[2]), r[2], 1e-9));
    assert_true(near(fabs(fit_residual(&fit, &points[fit.worst_point])), fit.worst, 1e-12));
}

/* Times with errors of up to 10 %: the estimate is near, and the intervals contain the true value in about 95 of 100
 * cases. */
TEST(noise_is_averaged_and_intervals_hold_the_truth)
{
    struct fit_point points[MOST];
    unsigned ts_held = 0, tw_held = 0, cases = 400;
    uint64_t seed = 1;
    struct fit fit;
    struct error e;

    for (unsigned k = 0; k < cases; k++) {
        size_t count = make(points, 4, 8);
        count += make(points + count, 4, 32);
        for (size_t i = 0; i < count; i++)
            points[i].seconds *= 1 + 0.1 * noise(&seed);
        assert_int_equal(fit_model(points, count, &fit, &e), 0);
        assert_true(near(fit.ts.value, TS, 0.4) && near(fit.tw.value, TW, 0.15));
        assert_true(fit.worst < 0.2 && fit.r2 > 0.9);
        ts_held += fit.ts.low < TS && TS < fit.ts.high;
        tw_held += fit.tw.low < TW && TW < fit.tw.high;
    }
    assert_in_range(ts_held, cases * 90 / 100, cases * 99 / 100);
    assert_in_range(tw_held, cases * 90 / 100, cases * 99 / 100);
}

/* More points: narrower intervals, also beyond the table of Student's t. */
TEST(many_points_narrow_the_intervals)
{
    struct fit_point points[MOST];
    uint64_t seed = 7;
    double width = HUGE_VAL;
    struct error e;

    for (size_t turns = 1; turns <= 64; turns *= 4) {
        struct fit fit;
        size_t count = 0;
        while (count < turns * SIZES) {
            count += make(points + count, 4, 8);
            for (size_t i = count - SIZES; i < count; i++)
                points[i].seconds *= 1 + 0.05 * noise(&seed);
        }
        assert_int_equal(fit_model(points, count, &fit, &e), 0);
        assert_true(fit.ts.high - fit.ts.low < width);
        assert_true(near(fit.ts.high - fit.ts.value, fit.ts.value - fit.ts.low, 1e-9));
        width = fit.ts.high - fit.ts.low;
    }
}

/* A link that passes 15000 bytes at once makes ts negative: there is no bound at zero. */
TEST(a_burst_gives_a_negative_startup)
{
    struct fit_point points[SIZES];
    struct fit fit;
    struct error e;

    for (size_t i = 0; i < SIZES; i++) {
        double bytes = 8 * sizes[i], limited = bytes > 15000 ? bytes - 15000 : 0;
        points[i] = (struct fit_point){4, bytes, 4 * 50e-6 + limited * TW};
    }
    assert_int_equal(fit_model(points + 2, SIZES - 2, &fit, &e), 0);
    assert_true(fit.ts.value < 0 && fit.tw.value > 0);
    assert_int_equal(fit_model(points, SIZES, &fit, &e), 0);
    assert_true(fit.worst > 0.15);
}

static void check_refused(const struct fit_point *points, size_t count, const char *says)
{
    struct fit fit;
    struct error e;

    assert_int_equal(fit_model(points, count, &fit, &e), -1);
    assert_int_equal(e.code, ERROR_REFUSED);
    assert_non_null(strstr(e.text, says));
}

TEST(times_that_cannot_be_fitted_are_refused)
{
    struct fit_point points[SIZES];

    (void)make(points, 4, 8);
    check_refused(points, 0, "at least 3 block sizes");
    check_refused(points, 2, "at least 3 block sizes");
    for (size_t i = 0; i < SIZES; i++)
        points[i].bytes = 8 * 4096.0; /* one size only */
    check_refused(points, SIZES, "block sizes, such as");
    for (size_t i = 0; i < SIZES; i++)
        points[i].bytes = 0;
    check_refused(points, SIZES, "block sizes, such as");
    for (size_t i = 0; i < SIZES; i++)
        points[i] = (struct fit_point){0, sizes[i], 1};
    check_refused(points, SIZES, "block sizes, such as");
    (void)make(points, 4, 8);
    points[2].seconds = 0;
    check_refused(points, SIZES, "cannot be fitted");
    points[2].seconds = -1;
    check_refused(points, SIZES, "cannot be fitted");
    points[2].seconds = (double)NAN;
    check_refused(points, SIZES, "cannot be fitted");
    points[2].seconds = HUGE_VAL;
    check_refused(points, SIZES, "cannot be fitted");
}
