/* What the ranks of a communicator decide about the lanes, each by itself, from what all of them
 * have said: see sharing.h. */
#ifndef TORUSD_MPI_CLAIMS_H
#define TORUSD_MPI_CLAIMS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/mpi/job/lanes.h"

/* What one rank says or, number by number, the least that all ranks say (MPI_MIN over so many
 * ints). A rank that does not know a number, because its process does not lead and has never
 * used a lane, says VOTE_ANY. */
#define VOTE_ANY INT_MAX

struct votes {
    int proceeds; /* no other communicator asks at the same time */
    int salt;     /* a random number */
    int opens;    /* another lane can be opened */
    int lanes;    /* open lanes */
    struct lane_votes {
        int free;   /* the lane is open, and has no owner */
        int yields; /* its owner is not in a call, and all ranks of the owner are ranks of the
                     * asking communicator */
        /* How many owners it has had, and calls of the last owner. The least of the negative
         * numbers is the largest number, so it shows whether all ranks say the same. */
        int owner, minus_owner;
        int calls, minus_calls;
    } lane[LANES_MOST];
};

#define VOTE_INTS (sizeof(struct votes) / sizeof(int))

/* What was said of a lane the last time. */
struct look {
    bool known; /* all ranks said the same */
    int owner, calls;
};

struct looks {
    uint32_t at; /* calls that the asking communicator had made then */
    struct look lane[LANES_MOST];
};

enum claim_kind {
    CLAIM_NOTHING,
    CLAIM_LANE, /* a lane that is free, or that its owner loses */
    CLAIM_NEW,  /* a lane that has to be opened */
};

struct claim {
    enum claim_kind kind;
    unsigned lane;
};

/* Decides for the asking communicator, which has made `calls` calls, the same number on all its
 * ranks. */
struct claim claims_decide(const struct votes *all, const struct looks *last, uint32_t calls);

/* Remembers what all ranks have said. */
void claims_look(struct looks *looks, const struct votes *all, uint32_t calls);

#endif
