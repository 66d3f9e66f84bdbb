/* Fits the papers' cost model to the times of a sweep, for torusctl bench --fit. */
#pragma once

#include "client/cli/measuring/sweep.h"

#define FIT_SIZES "256,1KiB,4KiB,16KiB,64KiB,256KiB"

/* Adds all algorithms whose messages only go to neighbours, because the model has no time for hops, and that are not
 * far slower than the lower bound. Returns 0, or -1 with *e (ERROR_REFUSED) if no such algorithm accepts the torus. */
int fit_add_neighbours(struct sweep *s, struct error *e);

/* Fits the model to the results of the sweep, for each algorithm and for all together, and prints the fits. Returns
 * the exit code: EXIT_FAILED, after printing the reason, if nothing could be fitted. */
int fit_print(const struct cli *cli, const struct sweep *s);
