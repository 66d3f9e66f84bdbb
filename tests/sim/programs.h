/* Programs in the simulator, one on every node. They open a group and make calls, a few at the same time, at random
 * times; all data that they receive are checked. */
#pragma once

#include "daemon/torusd/group/group.h"
#include "tests/sim/sim.h"

/* A call of all programs. Sizes that differ by member are derived from the seed, up to `size`. */
struct sim_call {
    enum group_operation operation;
    uint32_t part; /* dimensions; 0: all of them */
    uint32_t root;
    enum reduction_type type;
    enum reduction_operator operator;
    uint64_t size; /* bytes of a block, or elements */
    bool in_place;
    bool any; /* SIM_MESSAGES: some members receive from any member */
    uint64_t timeout;
    uint64_t late; /* time after which a program is told whom the call waits for; 0: never */
    struct data_kind data; /* what programs say about their data */
};

/* A random operation that programs can call on the whole group and on parts. */
enum group_operation sim_any_operation(struct chance *c);
/* Whether the operation has a root, which does something else than other members. */
bool sim_is_rooted(enum group_operation operation);
/* Whether the call can be made in place, at least by some members. */
bool sim_may_be_in_place(enum group_operation operation);
/* Random operations on the whole torus; some of them large, in several rounds. */
struct sim_call sim_any_call(struct chance *c, const struct torus *t);

/* As an operation of the whole group: each member sends `size` bytes with tag `root` to the member `root` + 1 behind it,
 * modulo the number of members less one, and receives as many from the member as far before it. */
#define SIM_MESSAGES ((enum group_operation)20)
/* The same, but all others send to member `root`, which receives from any member. */
#define SIM_GATHERED ((enum group_operation)21)

struct sim_programs;

struct sim_programs_setup {
    const char *name;
    const struct sim_call *call;
    uint32_t calls;
    uint64_t seed;
    uint32_t depth; /* the most calls that run at the same time; at least 1 */
    uint64_t pause; /* nanoseconds between two calls, at most */
    bool unchecked;
    bool trace;
    bool
        shrinks; /* when told that a node or link is down, they shrink the group, and make all calls
                       * again from the first */
    bool stay;   /* they do not leave after their last call */
    uint64_t timeout; /* for opening; 0: none */
    bool shuffle;     /* calls of different parts in any order; then `depth` must be `calls` */
    bool lazy;        /* they wait for calls in any order, some time after these are complete */
    bool careless;    /* they also make invalid calls, which are refused */
    uint64_t untold;  /* bit r: the program at node r tells nothing of its data */
    /* NULL: all nodes, or the members as spec.members; only these nodes have a program. `lists`: NULL, or what each node
     * says instead. */
    const char *members;
    const char *const *lists;
};

/* Starts programs, which open the group at once or within `pause`. sim_programs_free() ends those that still run;
 * call it before sim_free(). `call` is borrowed. */
struct sim_programs *sim_programs_new(struct sim *sim, const struct sim_programs_setup *setup);
void sim_programs_free(struct sim_programs *p);

/* Runs until each program has made all calls and left, or has been told that the group has failed. */
bool sim_programs_run(struct sim_programs *p, uint64_t most);
/* The number of programs whose calls are all complete; the number that were told of a failure. */
uint32_t sim_programs_done(const struct sim_programs *p);
uint32_t sim_programs_failed(const struct sim_programs *p);
/* The number of a program's complete calls; the error that it was told, with code ERROR_NONE if none. */
uint32_t sim_program_completed(const struct sim_programs *p, uint32_t rank);
const struct error *sim_program_error(const struct sim_programs *p, uint32_t rank);

/* Whether a part could not be opened because of links that the group avoids. Its calls count as complete. */
bool sim_programs_left_out(const struct sim_programs *p, uint32_t part);

/* Whether the program's group was opened without this node. */
bool sim_program_is_without(const struct sim_programs *p, uint32_t rank, uint32_t node);

/* How often a program was told whom a call waits for, and the last text; "" if never. */
uint32_t sim_program_late(const struct sim_programs *p, uint32_t rank, const char **whom);

uint64_t sim_program_told_at(const struct sim_programs *p, uint32_t rank);

struct sim_program_state {
    bool open;
    bool member; /* whether it has not left, was not told of a failure, and its node lives */
    bool stopped;
    bool over;       /* from now on it makes no calls and receives nothing */
    uint32_t shrunk; /* how often it has made this call */
    uint32_t calls, completed;
};
struct sim_program_state sim_program_state(const struct sim_programs *p, uint32_t rank);

/* When something happened that may fail the group, or UINT64_MAX (a program has died, left early, made another call
 * than the others, or set a timeout); how often that happened; whether members of a part make different calls, if
 * all make all their calls; and when a program last called or was told something. */
uint64_t sim_programs_disturbed_at(const struct sim_programs *p);
unsigned sim_programs_disturbances(const struct sim_programs *p);
bool sim_programs_mistaken(const struct sim_programs *p);
/* When a program died, or left while calls were running, or UINT64_MAX. */
uint64_t sim_programs_failed_at(const struct sim_programs *p);
uint64_t sim_programs_moved_at(const struct sim_programs *p);

/* From now on the program makes no calls, until it is woken. */
void sim_program_stop(struct sim_programs *p, uint32_t rank);
void sim_program_go_on(struct sim_programs *p, uint32_t rank);
void sim_program_die(struct sim_programs *p, uint32_t rank);
/* Closes the program's group at once. */
void sim_program_leave(struct sim_programs *p, uint32_t rank);
/* The program's node died and is up again, and the program still runs: it shrinks its group. */
void sim_program_shrink(struct sim_programs *all, uint32_t rank);
/* The program makes this call instead of its next one. */
void sim_program_mistake(struct sim_programs *p, uint32_t rank, const struct sim_call *call);
