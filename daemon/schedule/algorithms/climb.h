/* Routes over trees whose branches are straight lines: up towards the root, then down. For
 * algorithms that gather and scatter.
 *
 * Where a node is on a line is told by its hops from the line's root, those towards - negative. A
 * node sends up when all below it have, and down when its parent has: so the edge above a node of
 * depth h is used in step D - h on the way up and in step D + h - 1 on the way down, D being the
 * depth of the tree. */
#ifndef TORUSD_SCHEDULE_ALGORITHMS_CLIMB_H
#define TORUSD_SCHEDULE_ALGORITHMS_CLIMB_H

#include "daemon/schedule/algorithm.h"

/* Hops along `dim` from coordinate `root` to another, the shorter way round; positive if both are
 * equally long. */
int64_t climb_offset(const struct torus *t, unsigned dim, uint32_t root, uint32_t coordinate);

static inline uint32_t climb_length(int64_t hops)
{
    return (uint32_t)(hops < 0 ? -hops : hops);
}

/* The hops from the root that two routes along a dimension share. */
int64_t climb_common(int64_t a, int64_t b);

/* A route, hop by hop. */
struct climb {
    struct leg *legs; /* with room for all hops */
    uint32_t count;
    uint32_t depth;   /* depth of the node that the route has reached */
    uint32_t deepest; /* D */
    uint32_t begin;   /* the tree's first step */
};

/* Appends the hops from `hops` away from the line's root to `end` away, which is nearer. */
void climb_up(struct climb *c, unsigned dim, int64_t hops, int64_t end);

/* Appends the hops from `start` away to `hops` away, which is further. */
void climb_down(struct climb *c, unsigned dim, int64_t start, int64_t hops);

#endif
