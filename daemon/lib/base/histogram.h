/* Counts durations by their size, as monitoring shows them. */
#pragma once

#include <stdint.h>

#define HISTOGRAM_BOUNDS 14u

/* Zero-initialise. */
struct histogram {
    uint64_t bucket[HISTOGRAM_BOUNDS + 1]; /* the last one: above all bounds */
    double sum;                            /* of all values */
};

/* The upper bounds of the buckets, in seconds: 0.001, 0.003, 0.01 ... 3000. */
extern const double histogram_bounds[HISTOGRAM_BOUNDS];

/* Counts a value, which belongs to the first bucket whose bound is not below it. */
void histogram_add(struct histogram *h, double seconds);
