/* Measures the costs of exchanges on a running torus (daemon/lib/schedule/predict.h):
 *
 * - A step and a message: exchanges of single bytes by algorithms with different numbers of steps and messages. The
 *   costs are those that explain the medians best.
 * - A byte: an exchange that keeps all links busy in both directions for most of a second gives the rate. Every
 *   exchange waits for the slowest link, so this rate includes the slowest link and the limits of processors. The
 *   rates that TCP reports for each link are only shown: they tell which link is slow, but rise with every burst that
 *   a link passes.
 * - Sizes in between, where bursts and processors make each algorithm differ from the model: exchanges of several
 *   sizes, whose results the daemon that was asked remembers. Algorithms that the model would prefer to the measured
 *   ones are measured, too. */
#pragma once

#include <torus/torus.h>

#include "daemon/lib/schedule/predict.h"

#define CALIBRATION_ALGORITHMS 64 /* at most */

struct calibration_run {
    struct torus torus;
    struct predict_costs costs;
    size_t count;    /* number of algorithms that auto may choose on this torus */
    size_t measured; /* number of these, from the first on, that are measured with single bytes */
    const struct algorithm *algorithm[CALIBRATION_ALGORITHMS];
    const struct algorithm *stream; /* one of these, which keeps all links busy */
    struct detour *found;           /* NULL, or holds its routes: see found_routes() */
    struct predict_counts counts[CALIBRATION_ALGORITHMS];
    double seconds[CALIBRATION_ALGORITHMS]; /* median for one byte, if measured */
    uint64_t block_bytes;                   /* block size of the exchange with all links busy */
    double block_seconds;                   /* its time */
    struct torus_result *busy;              /* its result */
};

/* Measures the costs, and shows the progress on a terminal. Returns 0 with *run, which the caller frees with
 * calibration_free(), or -1 with *failed if the daemon or an exchange has failed (then failed->code is not 0),
 * otherwise with *e. */
int calibration_measure(struct torus_client *client, struct calibration_run *run,
                        struct torus_error *failed, struct error *e);
void calibration_free(struct calibration_run *run);
