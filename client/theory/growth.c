#include "client/theory/growth.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DENOMINATOR_MOST 1000 /* of a coefficient */

/* The counts at the first sizes that all differ; returns how many, at most `most`. */
static size_t different_sizes(const struct growth_point *points, size_t count,
                              struct growth_point *different, size_t most)
{
    size_t found = 0;

    for (size_t i = 0; i < count && found < most; i++) {
        size_t k = 0;
        while (k < found && different[k].size != points[i].size)
            k++;
        if (k == found)
            different[found++] = points[i];
    }
    return found;
}

/* Finds the coefficients of the polynomial through `count` points of different sizes: Newton's divided differences, then
 * the products multiplied out. */
static void interpolate(const struct growth_point *points, size_t count, long double *coefficient)
{
    long double difference[GROWTH_MOST_DEGREE + 1];

    for (size_t i = 0; i < count; i++)
        difference[i] = points[i].count;
    for (size_t order = 1; order < count; order++)
        for (size_t i = count; i-- > order;)
            difference[i] = (difference[i] - difference[i - 1]) /
                            ((long double)points[i].size - points[i - order].size);
    memset(coefficient, 0, (GROWTH_MOST_DEGREE + 1) * sizeof *coefficient);
    for (size_t i = count; i-- > 0;) { /* times (size - points[i].size), plus the difference */
        for (size_t power = count - 1; power > 0; power--)
            coefficient[power] = coefficient[power - 1] - coefficient[power] * points[i].size;
        coefficient[0] = difference[i] - coefficient[0] * points[i].size;
    }
}

/* Finds the fraction with the smallest denominator that is the number, but for errors of rounding. */
static bool find_fraction(long double number, double *numerator, double *denominator)
{
    for (int d = 1; d <= DENOMINATOR_MOST; d++) {
        long double n = roundl(number * d);
        if (fabsl(number * d - n) <= 1e-7L * (1 + fabsl(n))) {
            *numerator = (double)n;
            *denominator = d;
            return true;
        }
    }
    return false;
}

static bool gives(const struct growth *g, const struct growth_point *point)
{
    long double count = 0;

    for (unsigned power = g->degree + 1; power-- > 0;)
        count = count * point->size + (long double)g->numerator[power] / g->denominator[power];
    return fabsl(count - point->count) <= 1e-9L * point->count;
}

/* Tries a polynomial of a degree. */
static bool fits(const struct growth_point *points, size_t count, const long double *coefficient,
                 unsigned degree, struct growth *g)
{
    *g = (struct growth){.exact = true, .degree = degree};
    for (unsigned power = 0; power <= degree; power++)
        if (!find_fraction(coefficient[power], &g->numerator[power], &g->denominator[power]))
            return false;
    for (size_t i = 0; i < count; i++)
        if (!gives(g, &points[i]))
            return false;
    g->exponent = degree;
    g->factor = g->numerator[degree] / g->denominator[degree];
    return true;
}

/* Tries single powers, for which two sizes suffice, then the polynomials through the first sizes. */
static bool fit_polynomial(const struct growth_point *points, size_t count,
                           const struct growth_point *first, size_t sizes, struct growth *g)
{
    long double coefficient[GROWTH_MOST_DEGREE + 1];

    for (unsigned degree = 0; degree <= GROWTH_MOST_DEGREE; degree++) {
        memset(coefficient, 0, sizeof coefficient);
        coefficient[degree] = first[0].count / powl(first[0].size, degree);
        if (fits(points, count, coefficient, degree, g))
            return true;
    }
    for (unsigned degree = 1; degree + 2 <= sizes; degree++) {
        interpolate(first, degree + 1, coefficient);
        if (fits(points, count, coefficient, degree, g))
            return true;
    }
    return false;
}

static void fit_power(const struct growth_point *points, size_t count, struct growth *g)
{
    double x = 0, y = 0, xx = 0, xy = 0;

    for (size_t i = 0; i < count; i++) {
        x += log(points[i].size) / (double)count;
        y += log(points[i].count) / (double)count;
    }
    for (size_t i = 0; i < count; i++) {
        double from = log(points[i].size) - x;
        xx += from * from;
        xy += from * (log(points[i].count) - y);
    }
    g->exponent = xy / xx;
    g->factor = exp(y - g->exponent * x);
    for (size_t i = 0; i < count; i++)
        g->worst = fmax(g->worst,
                        fabs(g->factor * pow(points[i].size, g->exponent) / points[i].count - 1));
}

int growth_fit(const struct growth_point *points, size_t count, struct growth *g, struct error *e)
{
    struct growth_point first[GROWTH_MOST_DEGREE + 2];
    size_t sizes = different_sizes(points, count, first, GROWTH_MOST_DEGREE + 2);

    if (sizes < GROWTH_LEAST_SIZES)
        return error_set(e, ERROR_REFUSED, "counts of %d different sizes are needed to fit them",
                         GROWTH_LEAST_SIZES);
    for (size_t i = 0; i < count; i++)
        if (!(points[i].size > 0) || !(points[i].count > 0))
            return error_set(e, ERROR_REFUSED, "a count of 0 cannot be fitted");
    if (fit_polynomial(points, count, first, sizes, g))
        return 0;
    *g = (struct growth){0};
    fit_power(points, count, g);
    return 0;
}

/* Appends a term of the polynomial. */
static size_t append_term(const struct growth *g, unsigned power, const char *variable, char *text,
                          size_t used)
{
    double numerator = g->numerator[power], of = g->denominator[power], size = fabs(numerator);
    char factor[32] = "", exponent[16] = "", divisor[16] = "";

    if (power == 0 || size != 1)
        (void)snprintf(factor, sizeof factor, "%.0f", size);
    if (power > 1)
        (void)snprintf(exponent, sizeof exponent, "^%u", power);
    if (of != 1)
        (void)snprintf(divisor, sizeof divisor, "/%.0f", of);
    int n = snprintf(text + used, GROWTH_TEXT_SIZE - used, "%s%s%s%s%s",
                     used == 0       ? (numerator < 0 ? "-" : "")
                     : numerator < 0 ? " - "
                                     : " + ",
                     factor, power > 0 ? variable : "", exponent, divisor);
    used += n > 0 ? (size_t)n : 0;
    return used < GROWTH_TEXT_SIZE ? used : GROWTH_TEXT_SIZE - 1;
}

char *growth_format(const struct growth *g, const char *variable, char *text)
{
    size_t used = 0;

    text[0] = '\0';
    if (!g->exact) {
        (void)snprintf(text, GROWTH_TEXT_SIZE, "%.3g %s^%.3g", g->factor, variable, g->exponent);
        return text;
    }
    for (unsigned power = g->degree + 1; power-- > 0;)
        if (g->numerator[power] != 0 || g->degree == 0)
            used = append_term(g, power, variable, text, used);
    return text;
}
