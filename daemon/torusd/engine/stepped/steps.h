/* Runs a round step by step, from its admission to its end. */
#pragma once

#include "daemon/torusd/engine/stepped/state.h"

/* Resets the arrivals at the start of a round: no part of a message has arrived. */
void stepped_expect_arrivals(struct stepped *s);

/* Runs the steps as far as the arrived and sent messages allow. */
void stepped_advance(struct stepped *s);

/* engine_ops.admit */
void stepped_admit(struct engine *engine, uint64_t round);
