/* Summaries of many measurements. */
#ifndef TORUSD_CLI_QUANTILE_H
#define TORUSD_CLI_QUANTILE_H

#include <stddef.h>

/* Sorts the values in ascending order. */
void sort_values(double *values, size_t count);

/* The value below which `part` (0..1) of the sorted values lie: 0.5 gives the median, 0 the
 * smallest, 1 the largest. Interpolates between two values. 0 if there are none. */
double quantile(const double *sorted, size_t count, double part);

#endif
