/* All that a node knows of its exchanges. */
#ifndef TORUSD_EXCHANGE_RECORD_EXCHANGE_RECORD_H
#define TORUSD_EXCHANGE_RECORD_EXCHANGE_RECORD_H

#include <utlist.h>

#include "daemon/exchange/interface/exchange_types.h"
#include "daemon/router/router.h"

#define VERDICTS_REMEMBERED 256u

struct exchanges {
    struct exchanges_setup set;
    struct job *jobs;       /* in the order of asking */
    struct attempt *table;  /* all, by handle */
    struct attempt *active; /* in the order of their beginning */
    struct attempt *ended;  /* the youngest last, until they are forgotten */
    unsigned active_count, ended_count;
    unsigned tellable; /* jobs that have ended and whose clients are to be told in the next tick */
    bool start_due;    /* something has changed for jobs that wait to be started */
    uint32_t counter;  /* of this node's ids */
    struct block_events block_events; /* of all blocks; the context is the attempt */
    struct calibration calibration;
    uint32_t links_up;         /* ports (bits), as heard last */
    uint64_t changes;          /* of the topology: how many there have been, */
    uint64_t changed_at;       /* and when the last one was heard of */
    struct absence *absent;    /* by rank, */
    bool apart;                /* and those that are unreachable may be alive */
    uint32_t calibration_told; /* ports (bits) whose neighbours have been told of it */
    struct planner *planner;
    struct schedules *schedules;
    double least_pause; /* seconds between two exchanges of a session, seen so far */
    uint32_t next_handle[TORUS_MAX_PORTS];    /* which attempt may send next at a port */
    uint64_t unknown_logged[TORUS_MAX_PORTS]; /* when a message was last ignored aloud */
    uint64_t verdict[VERDICTS_REMEMBERED];    /* hashes of ids unknown here, for flooding */
    uint64_t verdict_at[VERDICTS_REMEMBERED]; /* when they were heard */
    unsigned next_verdict;                    /* the oldest */
    struct kept_trees *trees;
    struct kept *kept; /* what had arrived in attempts that were withdrawn (kept_blocks.h) */
    struct doubt *doubts;
    struct decision *decisions;
    uint64_t ask_at;     /* about doubts, and reminders of decisions; ROUTER_NEVER: none */
    struct error broken; /* code ERROR_NONE, or an invariant that has not held */
};

/* Doubts and decisions are looked at then, at the latest. */
static inline void ask_by(struct exchanges *all, uint64_t at)
{
    if (at < all->ask_at)
        all->ask_at = at;
}

#endif
