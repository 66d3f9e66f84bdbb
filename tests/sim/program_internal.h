/* A program in the simulator, and its running calls. */
#pragma once

#include "tests/sim/internal.h"
#include "tests/sim/programs.h"

/* A running call. */
struct sim_made {
    struct sim_made *next;
    uint32_t index;
    struct sim_call call;
    struct buffer *send, *receive;
    unsigned left; /* of its messages, those that are under way; other calls: 1 */
    uint32_t
        *sender;    /* SIM_GATHERED, of the root: who has sent each message, or GROUP_ANY_MEMBER */
    bool completed; /* complete, and its program has not waited for it yet */
};

struct program {
    struct sim_programs *all;
    uint32_t rank;
    uint32_t life; /* of its node */
    struct group *group;
    struct sim_made *made; /* the last one first */
    bool *has_called;      /* by call; without calls that it has mistaken for others */
    uint32_t calls, under_way, unwaited, completed;
    bool open, stopped, dead, left, due;
    bool gives_up;
    uint32_t shrunk; /* this many times */
    struct sim_call mistake;
    /* For each call, the wrong call made in its place (operation 0: none); NULL: no wrong calls. */
    struct sim_call *instead;
    struct error error;
    uint64_t told_at;
    uint32_t late_times;
    char late[200];
    bool *gone; /* by node: whether it was left out; NULL if none was */
};

/* Names of the calls of a program: that of the call, and the number of its message. */
#define SIM_MESSAGE_STEP (UINT64_C(1) << 32)

/* Makes a call of SIM_MESSAGES, or of SIM_GATHERED. */
void sim_program_send(struct program *p, struct sim_made *m, const struct group_call *call);
void sim_program_gather(struct program *p, struct sim_made *m, const struct group_call *call);
/* Notes that the daemon refuses a call of this number. */
void sim_program_refused(struct program *p, const struct group_call *call, uint32_t index,
                         const struct error *e);

struct sim_programs {
    struct sim_programs *next; /* in sim.programs */
    struct sim *sim;
    struct sim_programs_setup set;
    const struct torus *torus;
    struct program *program;
    struct chance chance;
    uint64_t disturbed_at, failed_at, moved_at;
    unsigned disturbances;
    uint64_t left_out;   /* bit: a part (up to 6 dimensions) that programs could not open */
    bool opened;         /* by a program; */
    bool never_opens;    /* and another one was told that none can have */
    struct sim_sum *sum; /* program_data.c */
};
