/* Summaries of many measurements. */
#pragma once

#include <stddef.h>

/* Sorts the values in ascending order. */
void sort_values(double *values, size_t count);

/* Returns a quantile of sorted values: part 0.5 is the median, 0 the smallest, 1 the largest value. Interpolates
 * between two values. Returns 0 if there are no values. */
double quantile(const double *sorted, size_t count, double part);
