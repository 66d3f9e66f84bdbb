/* A short allgather as a reduction. The blocks of all members, in order, are one vector that is combined on a
 * tree: each member contributes its own block and zeros, and OR combines them. */
#pragma once

#include "daemon/torusd/group/data/blocks.h"

struct allgather_reduction {
    struct source source;
    struct sink sink;
    struct blocks *blocks; /* LAYOUT_GATHER */
    uint64_t own, bytes;   /* in bytes: where this member's block begins; the size of the vector */
};

/* Sets up the source and sink; borrows the blocks. Only for engines that copy what they read (reducing.h). */
void allgather_reduction_init(struct allgather_reduction *a, struct blocks *b);
