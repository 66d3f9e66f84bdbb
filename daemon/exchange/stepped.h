/* Stepped execution of a plan, as the papers have it: a node's step q+1 starts when all that its
 * step q takes in has come. One round at a time; the counts are the schedule's.
 *
 * Blocks that pass through stay in the slabs they were read into. Outgoing frames are made when a
 * port asks for them, so that a message of any size needs no memory before it leaves. */
#ifndef TORUSD_EXCHANGE_STEPPED_H
#define TORUSD_EXCHANGE_STEPPED_H

#include "daemon/exchange/engine.h"
#include "daemon/schedule/plan.h"

/* Ready to take in frames of round 0. `plan` is borrowed; the window is 1. Returns NULL with *e if
 * there is no memory. */
struct engine *stepped_new(const struct engine_setup *setup, const struct plan *plan,
                           struct error *e);

#endif
