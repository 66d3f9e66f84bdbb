/* How much may be taken of something that others could ask for without end: that much a second, and more at once after a
 * pause. Counted in nanoseconds: what may be taken N times a second costs SECONDS / N. */
#pragma once

#include <stdbool.h>

#include "proto/elapsed.h"

struct allowance {
    uint64_t left; /* what may be taken at once, as of `at` */
    uint64_t at;
};

/* Takes `cost`, if that much is left; at most `most` gathers. Returns whether it was taken. */
static inline bool allowance_take(struct allowance *a, uint64_t now, uint64_t cost, uint64_t most)
{
    const uint64_t passed = elapsed(a->at, now);

    a->left = a->left > most || passed > most - a->left ? most : a->left + passed;
    a->at = now;
    if (a->left < cost)
        return false;
    a->left -= cost;
    return true;
}
