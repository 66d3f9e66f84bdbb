/* The costs of a schedule as numbers, which the cost model (client/theory/cost.h) turns into
 * time. */
#pragma once

#include <stdbool.h>

/* Counts of steps, blocks and hops. They need not be whole numbers (log5 N startups). A count that
 * a paper's model leaves out is 0. */
struct cost_counts {
    double startups;
    double transmission; /* blocks on the busiest channel, summed over steps */
    double rearranged;   /* blocks that a node moves in its memory */
    double hops;         /* sum over steps of the longest leg */
    bool overlapped;     /* hops are pipelined with the transmission: each block takes the longer
                          * of tp and its transmission time, and `hops` times the shorter of the
                          * two is added once */
};
