/* Groups of programs that go on without the nodes that go down. */
#ifndef TORUSD_TESTS_SIM_SHRINK_FIXTURE_H
#define TORUSD_TESTS_SIM_SHRINK_FIXTURE_H

#include "daemon/schedule/damage.h"
#include "tests/sim/group_fixture.h"

#define CALLS_MOST 40u

struct shrink_play {
    uint64_t seed;
    struct sim *sim;
    struct damage down; /* nodes that are dead, links that are cut */
    struct sim_call call[CALLS_MOST];
    struct sim_programs_setup setup;
    struct sim_programs *programs;
};

/* So many programs have shrunk the group. */
struct shrinking {
    const struct shrink_play *play;
    uint32_t programs;
};

/* A number below `below`, of the chance of the simulator. */
uint32_t shrink_any(struct shrink_play *p, uint32_t below);

/* Whether the node is dead. */
bool shrink_is_dead(const struct shrink_play *p, uint32_t rank);

/* How many nodes live. */
uint32_t shrink_living(const struct shrink_play *p);

/* The first of those that are dead. */
uint32_t shrink_first_dead(const struct shrink_play *p);

/* All that live have made all calls in a group of their own. */
bool shrink_have_all(struct sim *sim, void *context);

/* No program that lives has been told of a failure, and it is `good`; else it is a violation, of `what`. */
void shrink_check(struct shrink_play *p, bool good, const char *what);

/* All that live have all calls in time. */
void shrink_must_complete(struct shrink_play *p, const char *what);

/* Programs on all nodes, in a group that is open. */
struct shrink_play shrink_begin(uint64_t seed, uint64_t pause);

/* Programs on all nodes open the group. */
void shrink_open_all(struct shrink_play *p);

/* Frees all of it. */
void shrink_end(struct shrink_play *p);

/* A node dies, often the first that is left, without which the others can do. Returns whether there is
 * one. */
bool shrink_kill_one(struct shrink_play *p);

/* A link whose loss leaves them together. */
void shrink_cut_one(struct shrink_play *p);

/* A link between two that live is mended, if one that is drawn is cut. */
void shrink_mend_one(struct shrink_play *p);

/* For sim_run(): so many programs have shrunk the group. `context`: a struct shrinking. */
bool shrink_have_shrunk(struct sim *sim, void *context);

/* How often the programs that live have shrunk it, in all. */
uint32_t shrink_times(const struct shrink_play *p);

/* All that live have the same group open, which has left out the others. */
bool shrink_are_by_themselves(struct sim *sim, void *context);

/* It becomes so in time, or it is a violation, of `what`. */
void shrink_must_be(struct shrink_play *p, bool (*how)(struct sim *sim, void *context),
                    const char *what);

#endif
