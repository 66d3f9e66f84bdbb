/* A sweep over block sizes and algorithms on a running torus: for each of them one session of
 * exchanges back to back, or one in each of several turns. */
#ifndef TORUSD_CLI_SWEEP_H
#define TORUSD_CLI_SWEEP_H

#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/cli.h"
#include "daemon/schedule/torus.h"

#define SWEEP_MOST_SIZES 64
#define SWEEP_MOST_ALGORITHMS (MOST_FIELDS - 4) /* a column of a table for each, and others */

struct sweep {
    /* What to run: */
    const char *algorithm[SWEEP_MOST_ALGORITHMS];                /* names */
    const struct schedule_file *schedule[SWEEP_MOST_ALGORITHMS]; /* NULL, or where it comes from */
    size_t algorithms;
    uint64_t size[SWEEP_MOST_SIZES];
    size_t sizes;
    uint32_t repeat;
    uint32_t
        turns; /* all of it so often, one turn after the other, with fewer exchanges of those that
                     * take long; 0 = once */
    enum torus_mode mode;
    uint64_t timeout_ms;

    /* The torus: */
    struct torus torus;
    double link_mbit;

    /* What came of it: */
    json_t *results; /* an object for each size and algorithm that was run; the times of all turns
                      * together */
    size_t failed;   /* of them */
    size_t runs;     /* that have ended, of all sizes, algorithms and turns, */
    size_t all_runs; /* of so many */
    bool stopped;    /* before the end: by the user, or because the daemon has gone */
};

/* Adds an algorithm by its name, which must stay valid. Returns 0, or -1 with *e (_USAGE). */
int sweep_add(struct sweep *s, const char *name, struct error *e);

/* The same for a schedule from a file, which must stay valid, too. */
int sweep_add_schedule(struct sweep *s, const struct schedule_file *file, struct error *e);

/* Runs all of it. Returns 0, also if sessions fail or the user interrupts, with s->results to be
 * released; or -1 with *e. */
int sweep_run(struct sweep *s, struct cli *cli, struct error *e);

#endif
