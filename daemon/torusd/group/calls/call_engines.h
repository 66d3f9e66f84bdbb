/* The engines of a call: one for its data and one for its waves.
 *
 * A wave calculates the maximum of one number over all members, on one tree, and all members hear the result.
 * Round 0 says that all members have called, and how large the largest block is. For a large call it also says
 * that all are ready for its data; an uneven exchange has another wave for that. Each later wave of a large
 * call says that all members have finished one more round. */
#pragma once

#include "daemon/torusd/group/record/call.h"

/* Opens the engines that can be opened now. Returns 1 if all are there; 0 while schedules are planned, or until
 * the first wave has been heard; or -1 with *e. */
int call_engines_open(struct call *c, struct error *e);
