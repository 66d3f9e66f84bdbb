/* Nodes that no link leads to, and for how long that has been so. */
#ifndef TORUSD_EXCHANGE_RECORD_ABSENT_H
#define TORUSD_EXCHANGE_RECORD_ABSENT_H

#include <stdbool.h>
#include <stdint.h>

struct exchanges;

struct absence {
    uint64_t down_since;        /* ROUTER_NEVER: it is not down */
    uint64_t unreachable_since; /* ROUTER_NEVER: links that are up lead to it */
};

/* Returns 0, or -1 if there is no memory. all->absent is the caller's to free. */
int absent_init(struct exchanges *all);
/* The topology has changed. */
void absent_note(struct exchanges *all);
/* The node is taken for down: no link of it is up, or it went down together with its neighbours. Else, if it
 * cannot be reached, it may be alive. */
bool absent_is_down(const struct exchanges *all, uint32_t rank);
bool absent_is_unreachable(const struct exchanges *all, uint32_t rank);
/* When nothing is expected any longer of a node that cannot be reached, unless it is heard of before.
 * ROUTER_NEVER: it can be reached. */
uint64_t absent_given_up_at(const struct exchanges *all, uint32_t rank);
/* When a node that seems to be down is taken for dead, unless it is heard of before. ROUTER_NEVER: it is up. */
uint64_t absent_dead_at(const struct exchanges *all, uint32_t rank);
/* Nanoseconds from the first link of a node that goes down until all of them have been reported: what its
 * neighbours have heard last may be a heartbeat apart, and not all of them notice at once. */
uint64_t absent_naming_time(const struct exchanges *all);

#endif
