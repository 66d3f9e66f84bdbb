/* torusctl bench --html: a page that plots the times of a sweep. */
#pragma once

#include "client/cli/measuring/sweep.h"

/* Writes the page to a file ("-": standard output). Returns EXIT_DONE, or another exit code after printing the reason,
 * without a new file. */
int bench_page_write(const struct cli *cli, const char *file, const struct sweep *s);
