/* What programs of the simulator send, and what must come; written out independently of the daemon. */
#ifndef TORUSD_TESTS_SIM_PROGRAM_DATA_H
#define TORUSD_TESTS_SIM_PROGRAM_DATA_H

#include "tests/sim/program_record.h"

/* The members of a part that a program is in, and which of them it is. */
struct sim_team {
    uint32_t size, rank;
    uint32_t node[1024];
};

/* All nodes whose other coordinates are this node's, in their order. */
struct sim_team sim_team_of(const struct program *p, uint32_t part);
/* The mask of the whole torus. */
uint32_t sim_all_dimensions(const struct torus *t);

/* The sizes and places of the blocks of a call. */
struct sim_shape {
    uint64_t send[1024], send_at[1024], receive[1024], receive_at[1024]; /* bytes, or elements */
    uint64_t send_bytes, receive_bytes;
};

/* Gives a call, of which `index` and `call` are set, areas with what this program sends. *call refers to them and to
 * *s. To be freed. */
void sim_made_prepare(const struct program *p, struct sim_made *m, struct sim_shape *s,
                      struct group_call *call);
void sim_made_free(struct sim_made *m);
/* The program writes to what it has sent. */
void sim_made_use_memory(const struct sim_made *m);
/* It is complete: everything that has come is what must come; else it is a violation. */
void sim_made_check(const struct program *p, const struct sim_made *m);
/* A barrier is complete when all have called it. */
void sim_made_check_all_have_called(const struct program *p, const struct sim_made *m);

#endif
