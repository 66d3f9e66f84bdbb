/* The papers' cost model fitted to measured times: each startup takes ts, and each byte on the
 * critical path tw. Pure arithmetic. */
#ifndef TORUSD_CLI_FIT_H
#define TORUSD_CLI_FIT_H

#include <stddef.h>

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
    double median;       /* of the residuals' magnitudes, see fit_residual() */
    double worst;        /* the largest of them */
    size_t worst_point;  /* its index */
    size_t points;
};

/* Finds the ts and tw with the least sum of squared relative residuals, neither of them bounded
 * below. The intervals are Student's, and assume that the residuals are independent and normally
 * distributed. Returns 0, or -1 with *e (_REFUSED): fewer than FIT_LEAST_POINTS points, a time that
 * is not above 0, or points that do not tell startups from bytes because one is the same multiple
 * of the other in all of them, as with a single block size. */
int fit_model(const struct fit_point *points, size_t count, struct fit *fit, struct error *e);

/* The seconds that the model gives for a point; its own are not used. */
double fit_seconds(const struct fit *fit, const struct fit_point *point);

/* (measured - model) / measured. */
double fit_residual(const struct fit *fit, const struct fit_point *point);

#endif
