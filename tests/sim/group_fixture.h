/* Shared by the simulator's tests of groups. */
#pragma once

#include "tests/sim/programs.h"

struct group_awaited {
    struct sim_programs *programs;
    uint32_t failed; /* at least this many have been told */
};

/* A simulator with links of 1 Gbit/s, all of which are up. */
struct sim *group_sim(const char *dims, uint64_t seed);

#define GROUP_STEADY_CALLS 8u

/* Programs on all nodes that make GROUP_STEADY_CALLS calls of several kinds, and stay. The caller frees them. */
struct sim_programs *group_start_steady(struct sim *sim, uint64_t seed);
/* The same in a group that is traced. */
struct sim_programs *group_start_steady_traced(struct sim *sim, uint64_t seed);

/* For sim_run(): whether all calls of all programs are complete. `context`: the programs. */
bool group_all_completed(struct sim *sim, void *context);

/* For sim_run(): whether that many programs have been told of a failure. `context`: a struct group_awaited. */
bool group_have_failed(struct sim *sim, void *context);

/* Checks that all live programs are told the same error within `most`, and that it contains these words. */
void group_check_failed(struct sim *sim, struct sim_programs *programs, uint32_t count,
                        uint64_t most, enum error_code code, const char *words);

/* Checks that a new group of the same name works once the torus is whole. */
void group_check_reopens(struct sim *sim, uint64_t seed);

/* Cuts a link of the node. Returns whether all nodes can still reach each other. */
bool group_cut(struct sim *sim, uint32_t node, unsigned port);

/* A random number below `below`, from the simulator's stream. */
uint32_t group_any(struct sim *sim, uint32_t below);
