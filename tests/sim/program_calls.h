/* A program of the simulator makes its calls. */
#ifndef TORUSD_TESTS_SIM_PROGRAM_CALLS_H
#define TORUSD_TESTS_SIM_PROGRAM_CALLS_H

#include "tests/sim/program_record.h"

/* The call that it makes next; as many as there are: none can be made yet. */
uint32_t sim_program_next_call(struct program *p);
/* Makes it. */
void sim_program_call(struct program *p, uint32_t index);
/* Whether two calls of which one member makes one, and another the other, may both succeed. */
bool sim_call_may_pass(const struct sim_call *a, const struct sim_call *b);
/* Something that may fail the group is done now; and something that fails it. */
void sim_programs_disturb(struct sim_programs *all);
void sim_programs_fail(struct sim_programs *all);

#endif
