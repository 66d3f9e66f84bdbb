/* Programs in the simulator: one on every node, that open a group and make calls on it, a few at a
 * time, whenever it pleases them; everything that they receive is compared with what must come. */
#ifndef TORUSD_TESTS_SIM_PROGRAMS_H
#define TORUSD_TESTS_SIM_PROGRAMS_H

#include "daemon/group/group.h"
#include "tests/sim/sim.h"

/* What all of them call. Sizes that differ by member are derived from the seed, up to `size`. */
struct sim_call {
    enum group_operation operation;
    uint32_t part; /* dimensions; 0: all of them */
    uint32_t root;
    enum reduction_type type;
    enum reduction_operator operator;
    uint64_t size; /* bytes of a block, or elements */
    bool in_place;
    uint64_t timeout;
    uint64_t late; /* after which a program is told whom the call waits for; 0: never */
};

/* Any that programs call on the whole and on parts. */
enum group_operation sim_any_operation(struct chance *c);
/* Whether it can be made in place, by some members at least. */
bool sim_may_be_in_place(enum group_operation operation);
/* One of anything on the whole torus; large ones, in rounds, now and then. */
struct sim_call sim_any_call(struct chance *c, const struct torus *t);

struct sim_programs;

struct sim_programs_setup {
    const char *name;
    const struct sim_call *call;
    uint32_t calls;
    uint64_t seed;
    uint32_t depth; /* calls under way at a time, at most; at least 1 */
    uint64_t pause; /* nanoseconds between two calls, at most */
    bool unchecked;
    bool shrinks;     /* told that a node or link is down, they shrink the group, and make all calls
                       * again from the first */
    bool stay;        /* they do not leave when they have made all calls */
    uint64_t timeout; /* of opening; 0: none */
    bool shuffle;     /* calls of different parts in any order; then `depth` must be `calls` */
    bool lazy;        /* they wait for calls in any order, some time after these are complete */
    bool careless;    /* they also make calls that cannot be, and are refused */
};

/* They open the group at once, or within `pause`. sim_programs_free(), before sim_free(), ends those
 * that are left.
 * `call` is borrowed. */
struct sim_programs *sim_programs_new(struct sim *sim, const struct sim_programs_setup *setup);
void sim_programs_free(struct sim_programs *p);

/* Until each has made all calls and left, or has been told that the group has failed. */
bool sim_programs_run(struct sim_programs *p, uint64_t most);
/* How many have had all their calls completed; how many have been told of a failure. */
uint32_t sim_programs_done(const struct sim_programs *p);
uint32_t sim_programs_failed(const struct sim_programs *p);
/* Calls that a program has had completed; what it has been told; code ERROR_NONE: nothing. */
uint32_t sim_program_completed(const struct sim_programs *p, uint32_t rank);
const struct error *sim_program_error(const struct sim_programs *p, uint32_t rank);

/* Whether a part could not be opened, since the group goes around links that are down. Its calls count
 * as completed. */
bool sim_programs_left_out(const struct sim_programs *p, uint32_t part);

/* Whether the group that the program has opened has been opened without this node. */
bool sim_program_is_without(const struct sim_programs *p, uint32_t rank, uint32_t node);

/* How often a program has been told whom a call waits for, and what at last: "" if never. */
uint32_t sim_program_late(const struct sim_programs *p, uint32_t rank, const char **whom);

uint64_t sim_program_told_at(const struct sim_programs *p, uint32_t rank);

struct sim_program_state {
    bool open;
    bool member; /* it has not left, nor been told of a failure, and its node lives */
    bool stopped;
    bool over;       /* nothing more comes from it or to it */
    uint32_t shrunk; /* times that it has called that */
    uint32_t calls, completed;
};
struct sim_program_state sim_program_state(const struct sim_programs *p, uint32_t rank);

/* When something was done that may fail the group (a program has died, left early, or called
 * otherwise than the others or with a timeout), or UINT64_MAX; how often; whether members of a part
 * call differently, if all make all their calls; and when a program has called or been told something
 * for the last time. */
uint64_t sim_programs_disturbed_at(const struct sim_programs *p);
unsigned sim_programs_disturbances(const struct sim_programs *p);
bool sim_programs_mistaken(const struct sim_programs *p);
/* When a program died, or left calls under way, or UINT64_MAX. */
uint64_t sim_programs_failed_at(const struct sim_programs *p);
uint64_t sim_programs_moved_at(const struct sim_programs *p);

/* The program makes no further call from now on, until it is woken. */
void sim_program_stop(struct sim_programs *p, uint32_t rank);
void sim_program_go_on(struct sim_programs *p, uint32_t rank);
void sim_program_die(struct sim_programs *p, uint32_t rank);
/* It closes the group at once. */
void sim_program_leave(struct sim_programs *p, uint32_t rank);
/* Its node died and is up again, the program is the same: it shrinks its group. */
void sim_program_shrink(struct sim_programs *all, uint32_t rank);
/* Its next call will be this one instead. */
void sim_program_mistake(struct sim_programs *p, uint32_t rank, const struct sim_call *call);

#endif
