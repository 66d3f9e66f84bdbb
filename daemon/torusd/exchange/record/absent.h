/* Nodes that no link leads to, and since when. Times are nanoseconds of the router's clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct exchanges;

struct absence {
    uint64_t down_since;        /* ROUTER_NEVER: some of its links are up */
    uint64_t unreachable_since; /* ROUTER_NEVER: links that are up lead to it */
};

/* Allocates exchanges->absent, which the caller frees. Returns 0, or -1 if there is no memory. */
int absent_init(struct exchanges *exchanges);
/* Updates the times, because the topology has changed. */
void absent_note(struct exchanges *exchanges);
/* Whether the node counts as down: none of its links is up, or it went down together with its neighbours. A
 * node that is unreachable but not down may be alive. */
bool absent_is_down(const struct exchanges *exchanges, uint32_t rank);
/* Whether no way over links that are up leads to the node. */
bool absent_is_unreachable(const struct exchanges *exchanges, uint32_t rank);
/* Returns when an unreachable node is given up; ROUTER_NEVER: it can be reached. */
uint64_t absent_given_up_at(const struct exchanges *exchanges, uint32_t rank);
/* Returns when a node without links counts as dead; ROUTER_NEVER: it is up. */
uint64_t absent_dead_at(const struct exchanges *exchanges, uint32_t rank);
/* Returns the nanoseconds from the first lost link of a node that goes down until all its lost links are
 * reported. Neighbours notice at different times, up to a heartbeat apart. */
uint64_t absent_report_time(const struct exchanges *exchanges);
