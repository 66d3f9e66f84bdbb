/* The costs for predictions: the latest measured costs that this node has heard of. They are kept over restarts
 * and told to the neighbours (planning/calibration.h). */
#pragma once

#include "daemon/torusd/planning/calibration.h"
#include "proto/peer/peer_message.h"

struct exchanges;

/* Returns this node's calibration; its version is 0 if nothing was measured. */
const struct calibration *exchanges_calibration(const struct exchanges *exchanges);
/* Returns the costs for predictions: the measured costs, or the default costs. */
struct predict_costs exchanges_costs(const struct exchanges *exchanges);
/* Returns engine_setup.relayed for the links of this node; valid while the exchanges exist. */
const uint32_t *exchanges_relayed_frames(const struct exchanges *exchanges);
/* Sets new costs for all nodes, measured at this time; NULL restores the default costs. Returns 0, or -1 with
 * *e if the costs are out of range. */
int exchanges_calibrate(struct exchanges *exchanges, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e);

/* Loads the costs that were stored before this node was restarted. */
void link_costs_load(struct exchanges *exchanges);
/* Handles a neighbour's calibration. Returns 0, or -1 with *e if the neighbour is to blame. */
int link_costs_heard(struct exchanges *exchanges, unsigned port, const struct peer_calibration *in,
                     struct error *e);
/* Tells the calibration to neighbours whose links have come up. */
void link_costs_topology(struct exchanges *exchanges);
