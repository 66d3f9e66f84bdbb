#include "client/cli/terminal/quantile.h"

#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void sort_values(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
}

double quantile(const double *sorted, size_t count, double part)
{
    if (count == 0)
        return 0;
    double at = part * (double)(count - 1);
    size_t below = (size_t)at;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}
