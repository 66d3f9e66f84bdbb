/* Schedules as files of the user: the file that --import and --schedule name, and what --export prints. */
#pragma once

#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/algorithm.h"
#include "daemon/lib/schedule/file/imported.h"

#define SCHEDULE_FILE_BYTES_MOST (64u << 20) /* XML is longer than torusd's format */

struct schedule_file {
    char *text; /* in torusd's format (imported.h), whatever the format of the file */
    size_t length;
    struct imported *imported;
    struct schedule_report report;
};

/* Reads and verifies a file in the format of torusd, MSCCL, ForestColl or TE-CCL, which its text shows, or runs the
 * algorithm in Python that `path` names (python_algorithm.h). Only torusd's format contains the torus; all others need
 * `torus`, which may otherwise be NULL. Returns 0 with *f, which the caller frees with schedule_file_free(), or -1 with
 * *e, which names the file. */
int schedule_file_read(struct schedule_file *f, const char *path, const struct torus *torus,
                       struct error *e);
void schedule_file_free(struct schedule_file *f); /* does nothing if *f is zeroed */

/* The options of torusctl plan that print the schedule as a file, as the user has given them; NULL: not given. */
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
