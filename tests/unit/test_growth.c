/* How counts grow: polynomials that give every count, and powers. */
#include <math.h>
#include <string.h>

#include "client/theory/growth.h"
#include "tests/support/cmocka.h"

typedef double count_fn(double n);

/* Fits the counts at first, first + step, ..., whose formula must be this. */
static struct growth fit(count_fn *count, double first, double step, size_t sizes,
                         const char *formula)
{
    struct growth_point points[64];
    char text[GROWTH_TEXT_SIZE];
    struct growth g;
    struct error e;

    for (size_t i = 0; i < sizes; i++)
        points[i] =
            (struct growth_point){first + step * (double)i, count(first + step * (double)i)};
    assert_success(growth_fit(points, sizes, &g, &e), e);
    assert_string_equal(growth_format(&g, "n", text), formula);
    return g;
}

static double constant(double n)
{
    return n / n * 7;
}
static double eighth(double n)
{
    return n * n * n / 8;
}
static double at2_startups(double n)
{
    return n / 2 + 2;
}
static double a1_startups(double n)
{
    return n * n * n / 4 + n * n - n;
}
static double tree_transmission(double n)
{
    return pow(n, 5) / 6 + pow(n, 4) / 2 + pow(n, 3) / 4 - n * n / 4 - n / 6;
}
static double root(double n)
{
    return 3 * sqrt(n);
}
static double logarithmic(double n)
{
    return n * log2(n);
}

TEST(exact)
{
    assert_true(fit(constant, 4, 4, 3, "7").exact);
    assert_true(fit(eighth, 4, 4, 3, "n^3/8").exact);
    struct growth g = fit(at2_startups, 4, 4, 3, "n/2 + 2");
    assert_true(g.exact && g.exponent == 1 && g.factor == 0.5 && g.worst == 0);
    g = fit(a1_startups, 4, 4, 5, "n^3/4 + n^2 - n");
    assert_true(g.exact && g.exponent == 3 && g.factor == 0.25);
    g = fit(tree_transmission, 4, 4, 16, "n^5/6 + n^4/2 + n^3/4 - n^2/4 - n/6");
    assert_true(g.exact && g.exponent == 5);
}

TEST(powers)
{
    struct growth g = fit(root, 4, 4, 9, "3 n^0.5");
    assert_true(!g.exact && fabs(g.exponent - 0.5) < 1e-9 && fabs(g.factor - 3) < 1e-9);
    assert_true(g.worst < 1e-9);
    struct growth_point points[5];
    struct error e;
    for (size_t i = 0; i < 5; i++)
        points[i] = (struct growth_point){4 << i, logarithmic(4 << i)};
    assert_success(growth_fit(points, 5, &g, &e), e);
    assert_true(!g.exact && g.exponent > 1.2 && g.exponent < 1.5 && g.worst > 0.01);
    /* The largest deviation is that of a point. */
    double worst = 0;
    for (size_t i = 0; i < 5; i++)
        worst = fmax(worst, fabs(g.factor * pow(points[i].size, g.exponent) / points[i].count - 1));
    assert_true(fabs(g.worst - worst) < 1e-12);
}

/* As many coefficients as sizes prove nothing: four sizes do not confirm a polynomial of degree three. */
TEST(not_confirmed)
{
    struct growth_point points[5];
    struct growth g;

    for (size_t i = 0; i < 5; i++)
        points[i] =
            (struct growth_point){4.0 * (double)(i + 1), a1_startups(4.0 * (double)(i + 1))};
    assert_int_equal(growth_fit(points, 4, &g, NULL), 0);
    assert_false(g.exact);
    assert_int_equal(growth_fit(points, 5, &g, NULL), 0);
    assert_true(g.exact);
    points[4].count++; /* a single count is enough to refute it */
    assert_int_equal(growth_fit(points, 5, &g, NULL), 0);
    assert_false(g.exact);
}

TEST(two_counts_of_a_size)
{
    struct growth_point points[] = {{16, 8}, {64, 64}, {64, 64}, {256, 512}};
    struct growth g;
    struct error e;

    assert_success(growth_fit(points, 4, &g, &e), e);
    assert_true(!g.exact && fabs(g.exponent - 1.5) < 1e-9);
    points[2].count = 128;
    assert_success(growth_fit(points, 4, &g, &e), e);
    assert_true(!g.exact && g.worst > 0.2);
    assert_fails(growth_fit(points, 3, &g, &e), e, ERROR_REFUSED, "3 different sizes");
    points[0].count = 0;
    assert_fails(growth_fit(points, 4, &g, &e), e, ERROR_REFUSED, "a count of 0");
}
