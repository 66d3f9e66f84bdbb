/* Prints the results of a sweep, for torusctl bench. */
#pragma once

#include "client/cli/measuring/sweep.h"

/* Print the results. Return the exit code of printing; failed exchanges do not count. */
int bench_print_text(const struct cli *cli, const struct sweep *s);
int bench_print_csv(const struct sweep *s);
int bench_print_json(const struct cli *cli, const struct sweep *s);
