/* What the ranks of a communicator decide together about the torus, each for itself, from what all of them have said:
 * see sharing.h. */
#ifndef TORUSD_MPI_CLAIMS_H
#define TORUSD_MPI_CLAIMS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/mpi/job/lanes.h"

/* What one rank says, or of all that is said, number by number, the least (MPI_MIN over so many ints). Those that do
 * not know, because their process does not lead and has never had to do with a lane, say VOTE_ANY. */
#define VOTE_ANY INT_MAX

struct votes {
    int proceeds; /* no other communicator asks at the same time */
    int salt;     /* at random */
    int opens;    /* another lane can be opened */
    int lanes;    /* that are open */
    struct lane_votes {
        int free;   /* it is open, and no communicator has it */
        int yields; /* the one that has it makes no call, and all its ranks are here */
        /* How many have had it, and calls of the last of them. The least of the negative numbers is the largest:
         * so it shows whether all say the same. */
        int owner, minus_owner;
        int calls, minus_calls;
    } lane[LANES_MOST];
};

#define VOTE_INTS (sizeof(struct votes) / sizeof(int))

/* What was said of a lane the last time. */
struct look {
    bool known; /* all said the same */
    int owner, calls;
};

struct looks {
    uint32_t at; /* calls of the communicator that asks */
    struct look lane[LANES_MOST];
};

enum claim_kind {
    CLAIM_NOTHING,
    CLAIM_LANE, /* it is free, or is taken away from its owner */
    CLAIM_NEW,  /* a lane that is to be opened */
};

struct claim {
    enum claim_kind kind;
    unsigned lane;
};

/* `calls` is how many the communicator that asks has made, the same on all its ranks. */
struct claim claims_decide(const struct votes *all, const struct looks *last, uint32_t calls);

/* Remembers what all have said. */
void claims_look(struct looks *looks, const struct votes *all, uint32_t calls);

#endif
