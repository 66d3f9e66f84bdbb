/* What is counted of schedules, and the costs that explain measurements. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/schedule/predict.h"

#define MOST 16

static struct predict_counts count(const char *dims, const char *name)
{
    const struct algorithm *a = algorithm_find(name);
    struct predict_counts counts;
    struct torus t;
    struct error e;

    assert_int_equal(torus_parse(&t, dims, &e), 0);
    assert_non_null(a);
    assert_int_equal(predict_count(&t, a, a->streaming, &counts, &e), 0);
    return counts;
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b) + 1e-15;
}

static void counts_are_those_of_the_schedules(void **state)
{
    (void)state;
    /* tree: 2 (N - 1) messages in all, up and down the longest way. */
    struct predict_counts c = count("4x4", "tree");
    assert_true(near(c.messages, 2.0 * 15 / 16));
    assert_true(near(c.steps, 8));
    c = count("8x8", "tree");
    assert_true(near(c.messages, 2.0 * 63 / 64));
    assert_true(near(c.steps, 16));
    /* pair: half a ring's size of rounds for each ring, one message in each. */
    c = count("4x4", "pair");
    assert_true(near(c.messages, 4));
    assert_true(near(c.steps, 4));
    assert_true(near(c.blocks, 32));
    c = count("8x8", "pair");
    assert_true(near(c.messages, 8));
    c = count("4x4", "pair-s4");
    assert_true(near(c.messages, 16));
    assert_true(near(c.blocks, 8));
    /* stream: the diameter, and the lower bound. */
    c = count("8x8", "stream");
    assert_true(c.streaming);
    assert_true(near(c.steps, 8));
    assert_true(near(c.blocks, 64));
    c = count("5x7", "stream");
    assert_true(near(c.steps, 5));
    assert_true(near(c.blocks, 30));
}

static void only_exchanges_are_counted(void **state)
{
    struct predict_counts counts;
    struct torus t;
    struct error e;

    (void)state;
    assert_int_equal(torus_parse(&t, "4x4", &e), 0);
    assert_int_equal(predict_count(&t, algorithm_find("balanced"), false, &counts, &e), -1);
    assert_int_equal(e.code, ERROR_USAGE);
    assert_int_equal(predict_count(&t, algorithm_find("ar"), false, &counts, &e), -1);
}

static size_t several(const char *dims, struct predict_counts *counts)
{
    static const char *const names[] = {"tree", "pair", "pair-s4", "dim", "stream", "direct"};
    size_t n = 0;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        counts[n++] = count(dims, names[i]);
    return n;
}

static void the_fit_recovers_the_costs(void **state)
{
    const struct predict_costs known[] = {
        {40e-6, 10e-6, 1e9}, {0, 70e-6, 1e9}, {1e-3, 0, 1e9}, {1e-6, 1e-3, 1e9}};
    struct predict_counts counts[MOST];
    double seconds[MOST];

    (void)state;
    size_t n = several("4x4", counts);
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        struct predict_costs fitted = {.bytes_per_second = 7};
        for (size_t i = 0; i < n; i++)
            seconds[i] = predict_seconds(&counts[i], &known[k], 0);
        predict_fit(counts, seconds, n, &fitted);
        assert_true(fabs(fitted.step - known[k].step) < 1e-9);
        assert_true(fabs(fitted.message - known[k].message) < 1e-9);
        assert_true(near(fitted.bytes_per_second, 7));
    }
}

static void the_fit_is_never_negative(void **state)
{
    struct predict_counts counts[MOST];
    double seconds[MOST];
    uint64_t chance = 1;

    (void)state;
    size_t n = several("4x4", counts);
    for (unsigned k = 0; k < 10000; k++) {
        struct predict_costs fitted = {0};
        for (size_t i = 0; i < n; i++) {
            chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
            seconds[i] = 1e-9 * (double)(1 + (chance >> 34));
        }
        predict_fit(counts, seconds, 1 + k % n, &fitted);
        assert_true(fitted.step >= 0 && fitted.message >= 0);
        assert_true(isfinite(fitted.step) && isfinite(fitted.message));
        assert_true(fitted.step + fitted.message > 0);
    }
}

static void the_rate_is_what_explains_a_large_exchange(void **state)
{
    const struct predict_costs costs = {40e-6, 10e-6, 6e6};
    struct predict_counts counts[MOST];

    (void)state;
    size_t n = several("8x8", counts);
    for (size_t i = 0; i < n; i++) {
        double seconds = predict_seconds(&counts[i], &costs, 1 << 20);
        assert_true(near(predict_rate(&counts[i], &costs, 1 << 20, seconds), 6e6));
        /* Faster than the other costs alone allow: still a rate. */
        double rate = predict_rate(&counts[i], &costs, 1, 1e-9);
        assert_true(isfinite(rate) && rate > 0);
    }
}

static void the_default_costs_choose_sensibly(void **state)
{
    struct predict_costs costs = predict_default_costs(50, 1);
    struct predict_counts tree = count("4x4", "tree"), pair = count("4x4", "pair"),
                          stream = count("4x4", "stream");

    (void)state;
    assert_true(predict_seconds(&pair, &costs, 1) < predict_seconds(&stream, &costs, 1));
    assert_true(predict_seconds(&stream, &costs, 1 << 20) <
                predict_seconds(&pair, &costs, 1 << 20));
    assert_true(predict_seconds(&pair, &costs, 1024) < predict_seconds(&tree, &costs, 1024));
    costs = predict_default_costs(0, 1);
    assert_true(costs.bytes_per_second > 0);
}

/* Many steps of few messages, or few of many: processors that nodes share prefer the former. */
static void shared_processors_make_messages_dear(void **state)
{
    struct predict_costs own = predict_default_costs(10, 1), shared = predict_default_costs(10, 32);
    struct predict_counts tree = count("8x8", "tree"), at2 = count("8x8", "at2");

    (void)state;
    assert_true(predict_seconds(&at2, &own, 1) < predict_seconds(&tree, &own, 1));
    assert_true(predict_seconds(&tree, &shared, 1) < predict_seconds(&at2, &shared, 1));
    assert_true(predict_seconds(&at2, &shared, 1 << 16) < predict_seconds(&tree, &shared, 1 << 16));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_those_of_the_schedules),
        cmocka_unit_test(only_exchanges_are_counted),
        cmocka_unit_test(the_fit_recovers_the_costs),
        cmocka_unit_test(the_fit_is_never_negative),
        cmocka_unit_test(the_rate_is_what_explains_a_large_exchange),
        cmocka_unit_test(the_default_costs_choose_sensibly),
        cmocka_unit_test(shared_processors_make_messages_dear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
