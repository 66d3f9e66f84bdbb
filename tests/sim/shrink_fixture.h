/* Groups of programs that go on without nodes that go down. */
#pragma once

#include "daemon/lib/schedule/damage.h"
#include "tests/sim/group_fixture.h"

#define CALLS_MOST 40u

struct shrink_play {
    uint64_t seed;
    struct sim *sim;
    struct damage down; /* dead nodes and cut links */
    struct sim_call call[CALLS_MOST];
    struct sim_programs_setup setup;
    struct sim_programs *programs;
};

/* Programs that have shrunk the group. */
struct shrinking {
    const struct shrink_play *play;
    uint32_t programs;
};

/* A random number below `below`, from the simulator's stream. */
uint32_t shrink_any(struct shrink_play *p, uint32_t below);

/* Whether the node is dead. */
bool shrink_is_dead(const struct shrink_play *p, uint32_t rank);

/* The number of live nodes. */
uint32_t shrink_living(const struct shrink_play *p);

/* The first dead node. */
uint32_t shrink_first_dead(const struct shrink_play *p);

/* Whether all live programs have made all calls in a group of their own. */
bool shrink_have_all(struct sim *sim, void *context);

/* It is a violation, described by `what`, if a live program was told of a failure or `good` is false. */
void shrink_check(struct shrink_play *p, bool good, const char *what);

/* Checks that all live programs complete all calls in time. */
void shrink_must_complete(struct shrink_play *p, const char *what);

/* Starts programs on all nodes, and waits until their group is open. */
struct shrink_play shrink_begin(uint64_t seed, uint64_t pause);

/* Starts programs on all nodes, which open the group. */
void shrink_open_all(struct shrink_play *p);

/* Frees everything. */
void shrink_end(struct shrink_play *p);

/* Kills a node that can be left out, often the first live one. Returns false if there is none. */
bool shrink_kill_one(struct shrink_play *p);

/* Cuts a link without dividing the live nodes. */
void shrink_cut_one(struct shrink_play *p);

/* Draws a link, and restores it if it is cut and both of its nodes live. */
void shrink_mend_one(struct shrink_play *p);

/* For sim_run(): whether so many programs have shrunk the group. `context`: a struct shrinking. */
bool shrink_have_shrunk(struct sim *sim, void *context);

/* How often all live programs together have shrunk the group. */
uint32_t shrink_times(const struct shrink_play *p);

/* Whether all live nodes have the same open group, without the other nodes. */
bool shrink_are_by_themselves(struct sim *sim, void *context);

/* Waits until that is true; it is a violation, described by `what`, if it does not become true in time. */
void shrink_must_be(struct shrink_play *p, bool (*how)(struct sim *sim, void *context),
                    const char *what);
