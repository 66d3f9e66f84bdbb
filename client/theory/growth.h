/* How a count of a schedule grows with the size of the torus: the polynomial of the lowest degree that gives every count
 * or, if no polynomial of a low degree does, the power that fits best. Pure arithmetic. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "proto/error.h"

#define GROWTH_LEAST_SIZES 3
#define GROWTH_MOST_DEGREE 5
#define GROWTH_TEXT_SIZE 256

struct growth_point {
    double size;  /* above 0: the side or the nodes of the torus */
    double count; /* above 0 */
};

struct growth {
    bool
        exact; /* the polynomial gives every count; it has fewer coefficients than there are sizes */
    unsigned degree;                          /* of the polynomial */
    double numerator[GROWTH_MOST_DEGREE + 1]; /* coefficients, from that of size^0, as fractions */
    double denominator[GROWTH_MOST_DEGREE + 1];
    double factor,
        exponent; /* the leading term factor * size^exponent, or the power that fits best */
    double worst; /* the largest deviation of the power from a count, as a part of that; exact: 0 */
};

/* Fits. The power has the least sum of squared deviations of logarithms. Returns 0, or -1 with *e (_REFUSED): fewer than
 * GROWTH_LEAST_SIZES different sizes, or a size or count that is not above 0. */
int growth_fit(const struct growth_point *points, size_t count, struct growth *g, struct error *e);

/* Writes "n^3/8", "n/2 + 2" or "0.0821 n^2.98". `text` has GROWTH_TEXT_SIZE bytes. Returns `text`. */
char *growth_format(const struct growth *g, const char *variable, char *text);
