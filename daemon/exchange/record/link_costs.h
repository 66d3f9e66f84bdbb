/* The costs that predictions are made with: what was measured last, as this node has heard it, kept over restarts and
 * told to the neighbours (planning/calibration.h). */
#ifndef TORUSD_EXCHANGE_RECORD_LINK_COSTS_H
#define TORUSD_EXCHANGE_RECORD_LINK_COSTS_H

#include "daemon/planning/calibration.h"
#include "proto/peer/peer_message.h"

struct exchanges;

/* What this node knows; version 0: nothing. */
const struct calibration *exchanges_calibration(const struct exchanges *all);
/* What predictions are made with: what was measured, else the default costs. */
struct predict_costs exchanges_costs(const struct exchanges *all);
/* What engine_setup.relayed is on the links of this node. */
uint32_t exchanges_relayed_frame(const struct exchanges *all);
/* New costs for all nodes, measured at this time, or NULL: back to the default costs. Returns 0, or
 * -1 with *e if the costs are out of range. */
int exchanges_calibrate(struct exchanges *all, const struct predict_costs *costs,
                        uint64_t measured_at, struct error *e);

/* What was known before this node was restarted. */
void link_costs_load(struct exchanges *all);
/* A neighbour's word. Returns 0, or -1 with *e if the neighbour is to blame. */
int link_costs_heard(struct exchanges *all, unsigned port, const struct peer_calibration *in,
                     struct error *e);
/* Links may have come up, whose other ends have not heard of the costs. */
void link_costs_topology(struct exchanges *all);

#endif
