/* Shared by the files about groups: random calls of programs, invariants, and checks at the end. */
#pragma once

#include "tests/sim/swarm/swarm.h"

/* Random numbers. */
enum {
    STREAM_GROUPS = 32,
    STREAM_PROGRAM_FAULTS,
    STREAM_HOLES,
    STREAM_DEATHS,
    STREAM_GROUP_TRACES
};

/* Random calls of all operations, on the whole torus and on parts. */
void swarm_draw_calls(const struct swarm_world *w, struct swarm_group *g, struct chance *c);
/* Call this at the end: a mistake that no member has ever noticed is a violation. */
void swarm_check_mistake(struct swarm_play *play, const struct swarm_group *g);
