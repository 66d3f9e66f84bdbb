/* Stepped execution of a plan, as in the papers: a node starts its step q+1 when everything that it receives
 * in step q has arrived. One round at a time; the counts of steps and blocks are those of the schedule.
 *
 * A frame is made when a port asks for it, so a message of any size needs no memory before it leaves. */
#pragma once

#include "daemon/lib/schedule/plan.h"
#include "daemon/torusd/engine/engine.h"

/* Returns an engine that accepts frames of round 0 at once; engine_free() frees it. `plan` is borrowed;
 * setup->window must be 1. Returns NULL with *e if there is no memory. */
struct engine *stepped_new(const struct engine_setup *setup, const struct plan *plan,
                           struct error *e);
