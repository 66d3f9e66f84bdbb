/* Copies of trees in worlds. tests/sim/copies checks how each ends. */
#pragma once

#include "tests/sim/swarm/swarm.h"

/* Random numbers. */
enum { STREAM_COPIES = 56, STREAM_COPY_TREES, STREAM_COPY_FAULTS };

void swarm_draw_copies(struct swarm_world *world);
void swarm_print_copies(const struct swarm_world *world);
void swarm_start_copies(struct swarm_play *play);
/* After every event. */
void swarm_check_copies(struct swarm_play *play);
bool swarm_copies_over(const struct swarm_play *play);
/* When everything has healed: copies that still go on end, nothing is left, and a new one works. */
void swarm_end_copies(struct swarm_play *play);
