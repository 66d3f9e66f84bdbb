/* What the tests of groups in the simulator have in common. */
#ifndef TORUSD_TESTS_SIM_GROUP_FIXTURE_H
#define TORUSD_TESTS_SIM_GROUP_FIXTURE_H

#include "tests/sim/programs.h"

struct group_awaited {
    struct sim_programs *programs;
    uint32_t failed; /* that have been told so, at least */
};

/* A simulator of links of 1 Gbit/s, all of which are up. */
struct sim *group_sim(const char *dims, uint64_t seed);

#define GROUP_STEADY_CALLS 8u

/* Programs on all nodes that make GROUP_STEADY_CALLS calls of several kinds, and stay. To be freed. */
struct sim_programs *group_start_steady(struct sim *sim, uint64_t seed);

/* For sim_run(): all programs have had all their calls completed. `context`: the programs. */
bool group_all_completed(struct sim *sim, void *context);

/* For sim_run(): so many programs have been told of a failure. `context`: a struct group_awaited. */
bool group_have_failed(struct sim *sim, void *context);

/* All of the live programs are told the same within `most`; where, with these words in it. */
void group_check_failed(struct sim *sim, struct sim_programs *programs, uint32_t count,
                        uint64_t most, enum error_code code, const char *words);

/* The torus being whole, a new group of the same name works. */
void group_check_reopens(struct sim *sim, uint64_t seed);

/* Cuts a link of the node. Returns whether all nodes can still be reached. */
bool group_cut(struct sim *sim, uint32_t node, unsigned port);

/* A number below `below`, of the chance of the simulator. */
uint32_t group_any(struct sim *sim, uint32_t below);

#endif
