/* Decides which lane an asking communicator gets, from the votes of its ranks: see communicator.h. Every rank decides by
 * itself, and all decide alike because they have the same votes. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/mpi/job/job.h"

#define OPEN_AFTER 16u /* calls before a group is opened, which costs memory of every daemon */

/* The vote of one rank or, number by number, the minimum of the votes of all ranks (MPI_MIN over VOTE_INTS ints). A
 * rank that does not know a number, because its process is not a leader and has never used a lane, votes VOTE_ANY. */
#define VOTE_ANY INT_MAX

struct votes {
    int proceeds; /* no other communicator asks at the same time */
    int salt;     /* a random number */
    int opens;    /* another lane can be opened */
    int lanes;    /* number of open lanes */
    struct lane_votes {
        int free; /* the lane is open, and has no owner */
        /* The owner can lose the lane: it is not in a call, and all its ranks are ranks of the asking communicator. */
        int yields;
        /* The number of owners that the lane has had, and the number of calls of the last owner. The negative numbers
         * are there because their minimum gives the maximum: minimum and maximum show whether all ranks agree. */
        int owner, minus_owner;
        int calls, minus_calls;
    } lane[LANES_MOST];
};

#define VOTE_INTS (sizeof(struct votes) / sizeof(int))

/* The last votes about a lane. */
struct lane_seen {
    bool known; /* all ranks agreed on the numbers below */
    int owner, calls;
};

struct lanes_seen {
    uint32_t at; /* number of calls that the asking communicator had made then */
    struct lane_seen lane[LANES_MOST];
};

enum claim_kind {
    CLAIM_NOTHING,
    CLAIM_LANE, /* an open lane, which is free or which its owner loses */
    CLAIM_NEW,  /* a lane that must be opened */
};

struct claim {
    enum claim_kind kind;
    unsigned lane;
};

/* Decides for the asking communicator, from all votes and the votes of its last question. `calls` is the number of
 * its calls, the same on all its ranks. */
struct claim claims_decide(const struct votes *all, const struct lanes_seen *last, uint32_t calls);

/* Stores the votes for the next question. */
void claims_remember(struct lanes_seen *seen, const struct votes *all, uint32_t calls);
