/* The results of a sweep as torusctl bench prints them. */
#ifndef TORUSD_CLI_BENCH_REPORT_H
#define TORUSD_CLI_BENCH_REPORT_H

#include "client/cli/measuring/sweep.h"

/* Each prints them and returns the exit code, as if nothing had failed in them. */
int bench_print_text(const struct cli *cli, const struct sweep *s);
int bench_print_csv(const struct sweep *s);
int bench_print_json(const struct cli *cli, const struct sweep *s);

#endif
