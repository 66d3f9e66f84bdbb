/* A round runs step by step, from its admission to its end. */
#ifndef TORUSD_ENGINE_STEPPED_STEPS_H
#define TORUSD_ENGINE_STEPPED_STEPS_H

#include "daemon/engine/stepped/state.h"

/* Nothing of the messages of a round has come in yet. */
void stepped_expect_arrivals(struct stepped *s);

/* Runs the steps as far as what has arrived, and what has left, allows. */
void stepped_advance(struct stepped *s);

/* engine_ops.admit */
void stepped_admit(struct engine *engine, uint64_t round);

#endif
