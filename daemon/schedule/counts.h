/* The costs of a schedule, as numbers that the cost model (client/theory/cost.h) prices. */
#ifndef TORUSD_SCHEDULE_COUNTS_H
#define TORUSD_SCHEDULE_COUNTS_H

#include <stdbool.h>

/* Counts of steps, blocks and hops. A count that a paper's model leaves out is 0. Not an integer
 * where a formula is not (log5 N startups). */
struct cost_counts {
    double startups;
    double transmission; /* blocks, lockstep: sum over steps of the most on any channel */
    double rearranged;   /* blocks that a node moves in its memory */
    double hops;         /* sum over steps of the longest leg */
    bool overlapped;     /* hops are pipelined with the transmission: each block takes the longer
                          * of tp and its transmission, and `hops` times the shorter come once */
};

#endif
