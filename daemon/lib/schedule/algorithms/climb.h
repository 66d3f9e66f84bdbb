/* Routes over trees whose branches are straight lines: up towards the root, then down. For
 * algorithms that gather and scatter.
 *
 * A place on a line is given as hops from the line's root, negative in direction -. A node sends up
 * when it has received from all its children, and down when it has received from its parent. In a
 * tree of depth D, the edge above a node of depth h is therefore used in step D - h on the way up
 * and in step D + h - 1 on the way down. */
#pragma once

#include "daemon/lib/schedule/algorithm.h"

/* Hops along `dim` from coordinate `root` to `coordinate`, the shorter way round; positive if both
 * ways are equally long. */
int64_t climb_offset(const struct torus *t, unsigned dim, uint32_t root, uint32_t coordinate);

/* The number of hops, without their direction. */
static inline uint32_t climb_length(int64_t hops)
{
    return (uint32_t)(hops < 0 ? -hops : hops);
}

/* The hops from the root, with their direction, that the ways to two places share. */
int64_t climb_common(int64_t a, int64_t b);

/* A route in the making, hop by hop. */
struct climb {
    struct leg *legs; /* with room for all hops */
    uint32_t count;
    uint32_t depth;   /* depth of the node that the route has reached */
    uint32_t deepest; /* D */
    uint32_t begin;   /* the tree's first step */
};

/* Appends the hops from the place `hops` of the line up to the place `end`, which is nearer to the
 * root. */
void climb_up(struct climb *c, unsigned dim, int64_t hops, int64_t end);

/* Appends the hops from the place `start` of the line down to the place `hops`, which is further
 * from the root. */
void climb_down(struct climb *c, unsigned dim, int64_t start, int64_t hops);
