/* The engines of a call: one for its data, and one for its waves.
 *
 * A wave is a maximum over all members of one number, on one tree, that all of them hear: round 0
 * says that all have called, and how large the largest block is; of a large call, that all are ready
 * for its data (an uneven one has a wave of its own for that), and each later wave that all have
 * finished one more round of it. */
#ifndef TORUSD_GROUP_CALLS_CALL_ENGINES_H
#define TORUSD_GROUP_CALLS_CALL_ENGINES_H

#include "daemon/group/record/call.h"

/* Opens what can be opened of its engines. Returns 1 if all are there; 0 if schedules are being planned, or the
 * first wave has to be heard; or -1 with *e. */
int call_engines_open(struct call *c, struct error *e);

#endif
