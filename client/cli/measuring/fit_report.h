/* The papers' cost model beside the times of a sweep, as torusctl bench --fit prints it. */
#ifndef TORUSD_CLI_FIT_REPORT_H
#define TORUSD_CLI_FIT_REPORT_H

#include "client/cli/measuring/sweep.h"

#define FIT_SIZES "256,1KiB,4KiB,16KiB,64KiB,256KiB"

/* Adds all algorithms whose messages only go to neighbours, since the model has no time for hops, and
 * that are not far slower than the lower bound. Returns 0, or -1 with *e (ERROR_REFUSED) if none of
 * them accepts the torus. */
int fit_add_neighbours(struct sweep *s, struct error *e);

/* Fits the model to the results of the sweep, each algorithm by itself and all together, and prints
 * that. Returns the exit code; EXIT_FAILED after having said why if nothing could be fitted. */
int fit_print(const struct cli *cli, const struct sweep *s);

#endif
