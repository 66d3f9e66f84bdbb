/* The data that programs of the simulator send and must receive, computed independently of the daemon. */
#pragma once

#include "tests/sim/program_internal.h"

/* The members of a program's part, and the program's index among them. */
struct sim_team {
    uint32_t size, rank;
    uint32_t node[1024];
};

/* All nodes whose other coordinates are those of this node, in ascending order. */
/* Whether it is SIM_MESSAGES or SIM_GATHERED. */
bool sim_is_message(enum group_operation operation);
/* How many members a message of SIM_MESSAGES goes forward. */
uint32_t sim_message_distance(const struct sim_call *call, uint32_t members);
struct sim_team sim_team_of(const struct program *p, uint32_t part);
/* The mask of the whole torus. */
uint32_t sim_all_dimensions(const struct torus *t);

/* The sizes and offsets of the blocks of a call. */
struct sim_shape {
    uint64_t send[1024], send_at[1024], receive[1024], receive_at[1024]; /* bytes, or elements */
    uint64_t send_bytes, receive_bytes;
};

/* Gives a call, whose `index` and `call` are set, its areas, with the program's data. *call refers to the areas and
 * to *s. The caller frees them. */
void sim_made_prepare(const struct program *p, struct sim_made *m, struct sim_shape *s,
                      struct group_call *call);
void sim_made_free(struct sim_made *m);
/* Overwrites the data that the program has sent. */
void sim_made_use_memory(const struct sim_made *m);
/* Call this for a complete call: it is a violation if any received data are wrong. */
void sim_made_check(const struct program *p, const struct sim_made *m);
/* Checks that all members have called a barrier that is complete. */
void sim_made_check_all_have_called(const struct program *p, const struct sim_made *m);
