/* What exchanges cost on this torus (schedule/predict.h), as it was measured: known to all nodes.
 * A new calibration is flooded; a link that comes up begins with what each end knows, so a node
 * that was not there is told. The higher version is the newer, whoever it comes from. */
#ifndef TORUSD_EXCHANGE_CALIBRATION_H
#define TORUSD_EXCHANGE_CALIBRATION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/error.h"
#include "daemon/schedule/predict.h"

#define CALIBRATION_TIME_MOST (UINT64_C(1) << 40) /* seconds since 1970 */

struct calibration {
    uint32_t version;           /* 0: there has never been one */
    uint64_t measured_at;       /* seconds since 1970; 0: none, or taken back */
    struct predict_costs costs; /* all 0 where measured_at is */
};

/* Whether these are numbers that a measurement can give. Returns 0, or -1 with *e. */
int calibration_check_costs(const struct predict_costs *costs, struct error *e);

/* The same for a whole calibration that a peer or a file brings; its version is not 0. */
int calibration_check(const struct calibration *c, struct error *e);

/* Whether `a` takes the place of `b`. Of two with one version, made at the same time on two nodes,
 * every node keeps the same one. */
bool calibration_newer(const struct calibration *a, const struct calibration *b);

struct exchanges;

/* What this node knows; version 0: nothing. */
const struct calibration *exchanges_calibration(const struct exchanges *all);

/* What predictions are made with: what was measured, else the default costs. */
struct predict_costs exchanges_costs(const struct exchanges *all);

/* New costs for all nodes, measured at this time, or NULL: back to the default costs. Returns 0, or
 * -1 with *e if they are no costs. */
int exchanges_calibrate(struct exchanges *all, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e);

#endif
