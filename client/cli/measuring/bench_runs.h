/* Runs of block sizes and algorithms on a torus of daemons. In each pass there is one run of exchanges back to back
 * for each size and algorithm. */
#pragma once

#include "client/cli/schedule_files/schedule_file.h"
#include "client/cli/terminal/cli.h"
#include "daemon/lib/schedule/torus.h"

#define BENCH_MOST_SIZES 64
#define BENCH_MOST_ALGORITHMS                                                                      \
    (MOST_FIELDS - 4) /* each is a column of a table, with other columns */

struct bench_runs {
    /* What to run: */
    const char *algorithm[BENCH_MOST_ALGORITHMS]; /* names */
    const struct schedule_file
        *schedule[BENCH_MOST_ALGORITHMS]; /* the file of a schedule, or NULL */
    size_t algorithms;
    uint64_t size[BENCH_MOST_SIZES];
    size_t sizes;
    uint32_t repeat;
    /* Number of passes over all sizes and algorithms; slow runs then have fewer exchanges. 0: one pass with all. */
    uint32_t passes;
    enum torus_mode mode;
    uint64_t timeout_ms;

    /* The torus: */
    struct torus torus;
    double link_mbit;

    /* The results: */
    json_t *results; /* an object for each size and algorithm, with the times of all passes */
    size_t failed;   /* number of failed runs */
    size_t runs;     /* number of runs that have ended */
    size_t all_runs; /* number of all runs */
    bool stopped;    /* ended early, by the user or because no daemon answers */
};

/* Adds an algorithm by its name, which must stay valid. Returns 0, or -1 with *e (_USAGE). */
int bench_runs_add(struct bench_runs *s, const char *name, struct error *e);

/* Adds a schedule from a file, which must stay valid. Returns 0, or -1 with *e (_USAGE). */
int bench_runs_add_schedule(struct bench_runs *s, const struct schedule_file *file,
                            struct error *e);

/* Adds what was run: "dims", "node_count", "link_mbit", "repeat" and "complete". Returns 0, or another value if memory is
 * short. */
int bench_runs_set(json_t *o, const struct bench_runs *s);

/* Makes all runs. Returns 0 with s->results, which the caller frees, also if runs fail or the user interrupts; or -1
 * with *e. */
int bench_run_all(struct bench_runs *s, struct cli *cli, struct error *e);
