/* All that a node knows about its exchanges. Times are nanoseconds of the router's clock. */
#pragma once

#include <utlist.h>

#include "daemon/torusd/exchange/interface/exchange_types.h"
#include "daemon/torusd/exchange/record/totals.h"
#include "daemon/torusd/router/router.h"

#define VERDICTS_REMEMBERED 256u
#define TRACES_KEPT 2u

struct exchanges {
    struct exchanges_setup set;
    struct job *jobs;       /* in the order in which they were asked for */
    struct attempt *table;  /* all attempts, by handle */
    struct attempt *active; /* attempts under way, oldest first */
    struct attempt *ended;  /* ended attempts, youngest last, until they are forgotten */
    unsigned active_count, ended_count;
    unsigned tellable; /* jobs that have ended and whose clients are told in the next tick */
    bool start_due;    /* the start queue must be checked again */
    uint32_t counter;  /* for ids that this node gives */
    /* For the blocks of all attempts; the context is the attempt. */
    struct block_events block_events;
    struct calibration calibration;
    uint32_t links_up;         /* ports (bits) whose links were up at the last change */
    uint64_t changes;          /* number of changes of the topology */
    uint64_t changed_at;       /* when the last change was noticed */
    struct absence *absent;    /* an entry for each rank */
    bool may_be_cut_off;       /* nodes that are unreachable may be alive */
    uint32_t calibration_told; /* ports (bits) whose neighbours know the calibration */
    struct planner *planner;
    struct schedules *schedules;
    /* By port: handle of the attempt that may send next. */
    uint32_t next_handle[TORUS_MAX_PORTS];
    uint64_t unknown_logged[TORUS_MAX_PORTS]; /* by port: when an ignored message was last logged */
    /* Hashes of the unknown ids whose verdicts this node has flooded. */
    uint64_t verdict[VERDICTS_REMEMBERED];
    uint64_t verdict_at[VERDICTS_REMEMBERED]; /* when each of these verdicts arrived */
    unsigned next_verdict;                    /* index of the oldest verdict */
    struct kept_trees *trees;
    struct kept *kept; /* blocks that arrived in withdrawn attempts (kept_blocks.h) */
    struct doubt *doubts;
    struct decision *decisions;
    /* When doubts and decisions are next checked; ROUTER_NEVER: there are none. */
    uint64_t ask_at;
    struct trace *trace[TRACES_KEPT]; /* of the latest traced jobs; NULL: none */
    struct exchange_totals totals;
    struct error broken; /* code ERROR_NONE, or the first invariant that was violated */
};

/* Makes sure that doubts and decisions are checked at this time or before. */
static inline void ask_by(struct exchanges *exchanges, uint64_t at)
{
    if (at < exchanges->ask_at)
        exchanges->ask_at = at;
}
