/* The options of torusctl plan that print the schedule as a file. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/algorithm.h"

/* The options as the user has given them; NULL: not given. */
struct export_arguments {
    const char *format; /* torusd, msccl or goal */
    const char *block_size;
    bool period;
};

/* Checks that the output is not too large. On a terminal, the output itself shows the progress. Returns 0, or -1 with
 * *e. */
int plan_export_check(const struct torus *t, const struct algorithm *a, bool by_period,
                      struct error *e);

/* Prints the schedule as a file. Returns EXIT_DONE, or another exit code after printing the reason. */
int plan_export(const struct cli *cli, const struct export_arguments *a, const struct torus *t,
                const struct algorithm *algorithm);
