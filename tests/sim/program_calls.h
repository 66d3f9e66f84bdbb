/* The calls of a program in the simulator. */
#pragma once

#include "tests/sim/program_record.h"

/* The index of the program's next call; the number of calls if none can be made yet. */
uint32_t sim_program_next_call(struct program *p);
/* Makes this call. */
void sim_program_call(struct program *p, uint32_t index);
/* Whether both calls may succeed if one member makes one and another member the other. */
bool sim_call_may_pass(const struct sim_call *a, const struct sim_call *b);
/* Call these when a program does something that may fail the group, or that fails it. */
void sim_programs_disturb(struct sim_programs *all);
void sim_programs_fail(struct sim_programs *all);
