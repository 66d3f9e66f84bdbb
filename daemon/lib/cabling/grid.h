/* A product of factors with a host at each place; the dimensions have no order yet. */
#pragma once

#include "daemon/lib/cabling/cabling.h"

#define GRID_FACTORS_MOST 10u /* 2^10 nodes */

struct grid_factor {
    uint32_t size;
    bool wrap;
    const struct graph *graph; /* NULL: a ring or line */
};

struct grid {
    unsigned factors;
    struct grid_factor factor[GRID_FACTORS_MOST];
    uint32_t nodes;
    uint32_t *host; /* by place: row-major, the last factor varies fastest */
};

static inline uint32_t grid_stride(const struct grid *g, unsigned factor)
{
    uint32_t stride = 1;

    for (unsigned i = factor + 1; i < g->factors; i++)
        stride *= g->factor[i].size;
    return stride;
}
