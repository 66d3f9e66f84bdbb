/* The order in which a block goes through the dimensions, for algorithms that exchange along lines.
 * Dimensions of one node are left out. Segment s of a block starts with the s-th of the others and
 * continues cyclically, so that segments use different dimensions at the same time: XY and YX order
 * in two dimensions. A block that is not split is segment 0. */
#pragma once

#include "daemon/lib/schedule/torus.h"

struct rotation {
    unsigned count;              /* dimensions of more than one node */
    uint8_t dim[TORUS_MAX_DIMS]; /* these dimensions, in ascending order */
};

/* The dimensions of a torus that have more than one node. */
static inline struct rotation rotation_of(const struct torus *t)
{
    struct rotation r = {.count = 0};

    for (unsigned i = 0; i < t->dims; i++)
        if (t->size[i] > 1)
            r.dim[r.count++] = (uint8_t)i;
    return r;
}

/* The dimension that a segment goes through in its turn `turn`, 0..count-1. */
static inline unsigned rotation_dim(const struct rotation *r, uint32_t segment, unsigned turn)
{
    return r->dim[(segment + turn) % r->count];
}

/* How many times every dimension has come first among the segments before this one. */
static inline uint32_t rotation_round(const struct rotation *r, uint32_t segment)
{
    return r->count > 0 ? segment / r->count : 0;
}
