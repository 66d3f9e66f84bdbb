/* A short allgather as a reduction: the blocks, one behind the other by member, are a vector that is combined on
 * a tree. Each member contributes its own block and zeros, which OR makes all blocks of. */
#ifndef TORUSD_GROUP_DATA_ALLGATHER_REDUCTION_H
#define TORUSD_GROUP_DATA_ALLGATHER_REDUCTION_H

#include "daemon/group/data/blocks.h"

struct allgather_reduction {
    struct source source;
    struct sink sink;
    struct blocks *blocks; /* LAYOUT_GATHER */
    uint64_t own, bytes; /* where this member's block begins in the vector, and how long that is */
};

/* Borrows the blocks. For engines that copy what they read (reducing.h). */
void allgather_reduction_init(struct allgather_reduction *a, struct blocks *b);

#endif
