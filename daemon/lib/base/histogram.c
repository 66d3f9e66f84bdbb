#include "daemon/lib/base/histogram.h"

const double histogram_bounds[HISTOGRAM_BOUNDS] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,  1,
                                                   3,     10,    30,   100,  300, 1000, 3000};

void histogram_add(struct histogram *h, double seconds)
{
    unsigned i = 0;

    while (i < HISTOGRAM_BOUNDS && seconds > histogram_bounds[i])
        i++;
    h->bucket[i]++;
    h->sum += seconds;
}
