/* What describes many measurements in a few numbers. */
#ifndef TORUSD_CLI_QUANTILE_H
#define TORUSD_CLI_QUANTILE_H

#include <stddef.h>

/* Sorts them, the smallest first. */
void sort_values(double *values, size_t count);

/* The value below which `part` (0..1) of the sorted values lie: 0.5 is the median, 0 the smallest,
 * 1 the largest; between two of them by their distances. 0 if there are none. */
double quantile(const double *sorted, size_t count, double part);

#endif
