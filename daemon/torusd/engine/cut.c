#include "daemon/torusd/engine/cut.h"

struct cut_round cut_round(const struct cut *cut, uint64_t round)
{
    struct cut_round r = {.begin = round * cut->round_bytes, .bytes = cut->round_bytes};
    uint32_t whole = cut->uniform ? cut_whole(&r, cut->block_bytes) : cut->round_bytes;

    r.stride = whole / cut->segments + (whole % cut->segments != 0);
    if (cut->uniform && cut->segments > 1 && r.stride < cut->least)
        r.stride = cut->least;
    return r;
}

uint32_t cut_longest(const struct cut *cut)
{
    const struct cut_round first = cut_round(cut, 0); /* later rounds are not longer */

    return cut->uniform ? cut_length(&first, cut->block_bytes, 0) : first.stride;
}
