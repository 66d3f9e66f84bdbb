/* Measures what exchanges cost on a running torus (daemon/schedule/predict.h):
 *
 * - a step and a message: exchanges of single bytes by algorithms that differ in how many of them
 *   they need give the costs that explain the medians best;
 * - a byte: one exchange that keeps all links busy both ways for most of a second gives the rate.
 *   Every exchange waits for the slowest link, so this rate includes the slowest link, and the
 *   limits of the processors. TCP's own figures for each link are only shown: they tell which link
 *   is slow, but jump up with every burst that a link lets through;
 * - sizes in between, where bursts and processors make each algorithm differ from the model in its
 *   own way: exchanges of several sizes, which the daemon that was asked remembers. Whatever the
 *   model alone would prefer to those that were measured is measured, too. */
#ifndef TORUSD_CLI_CALIBRATION_H
#define TORUSD_CLI_CALIBRATION_H

#include <torus/torus.h>

#include "daemon/schedule/predict.h"

#define CALIBRATION_ALGORITHMS 64 /* at most */

struct calibration_run {
    struct torus torus;
    struct predict_costs costs;
    size_t count;    /* of the algorithms that auto may choose on this torus, */
    size_t measured; /* of which so many, the first ones, are measured with single bytes */
    const struct algorithm *algorithm[CALIBRATION_ALGORITHMS];
    struct predict_counts counts[CALIBRATION_ALGORITHMS];
    double seconds[CALIBRATION_ALGORITHMS]; /* the median for one byte, where measured */
    uint64_t block_bytes;                   /* of the exchange with all links busy */
    double block_seconds;
    struct torus_result *busy; /* that exchange */
};

/* Measures, and shows on a terminal what is under way. Returns 0 with *run, to be released with
 * calibration_free(); or -1 with *failed set if the daemon or an exchange has failed, else *e. */
int calibration_measure(struct torus_client *client, struct calibration_run *run,
                        struct torus_error *failed, struct error *e);
void calibration_free(struct calibration_run *run);

#endif
