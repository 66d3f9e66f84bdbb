/* Fits the papers' cost model to measured times: each startup takes ts, and each byte on the critical path tw. */
#pragma once

#include <stddef.h>

#include "client/cli/measuring/bench_runs.h"
#include "proto/error.h"

#define FIT_LEAST_POINTS 3 /* two determine ts and tw; only more show how well they fit */

/* One measurement. */
struct fit_point {
    double startups; /* steps of the schedule */
    double bytes;    /* blocks on its critical path, times the bytes of a block */
    double seconds;  /* measured, above 0 */
};

/* A fitted value, and its 95 % confidence interval. */
struct fit_value {
    double value, low, high;
};

struct fit {
    struct fit_value ts; /* seconds per startup */
    struct fit_value tw; /* seconds per byte */
    double r2;           /* share of the variance that the model explains, weighted as the fit is */
    double median;       /* median of the absolute residuals: see fit_residual() */
    double worst;        /* the largest absolute residual */
    size_t worst_point;  /* index of its point */
    size_t points;
};

/* Finds the ts and tw with the least sum of squared relative residuals; both may be negative. The intervals are
 * Student's, and assume that the residuals are independent and normally distributed. Returns 0, or -1 with *e
 * (_REFUSED): fewer than FIT_LEAST_POINTS points, a time that is not above 0, or startups and bytes that are
 * proportional in all points, as with a single block size. */
int fit_model(const struct fit_point *points, size_t count, struct fit *fit, struct error *e);

/* Returns the seconds that the model predicts for a point. Does not use point->seconds. */
double fit_seconds(const struct fit *fit, const struct fit_point *point);

/* Returns the relative residual: (measured - model) / measured. */
double fit_residual(const struct fit *fit, const struct fit_point *point);

/* --- the report --- */

#define FIT_SIZES "256,1KiB,4KiB,16KiB,64KiB,256KiB"

/* Adds all algorithms whose messages only go to neighbours, because the model has no time for hops, and that are not
 * far slower than the lower bound. Returns 0, or -1 with *e (ERROR_REFUSED) if no such algorithm accepts the torus. */
int fit_add_neighbours(struct bench_runs *s, struct error *e);

/* Fits the model to the results of the runs, for each algorithm and for all together, and prints the fits. Returns
 * the exit code: EXIT_FAILED, after printing the reason, if nothing could be fitted. */
int fit_print(const struct cli *cli, const struct bench_runs *s);
