/* Shared by the files about groups: what programs call, what must hold while they do, and after that. */
#ifndef TORUSD_TESTS_SIM_SWARM_GROUPS_H
#define TORUSD_TESTS_SIM_SWARM_GROUPS_H

#include "tests/sim/swarm/swarm.h"

/* Of chance. */
enum { STREAM_GROUPS = 32, STREAM_PROGRAM_FAULTS, STREAM_HOLES, STREAM_DEATHS };

/* Calls of anything, on the whole torus and on parts. */
void swarm_draw_calls(const struct swarm_world *w, struct swarm_group *g, struct chance *c);
/* When all has settled: a mistake that passed every member has been noticed; else it is a violation. */
void swarm_check_mistake(struct swarm_play *play, const struct swarm_group *g);

#endif
