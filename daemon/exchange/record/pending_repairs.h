/* Pieces of blocks that have arrived damaged here, and those that others have asked for once more. */
#ifndef TORUSD_EXCHANGE_RECORD_PENDING_REPAIRS_H
#define TORUSD_EXCHANGE_RECORD_PENDING_REPAIRS_H

#include "daemon/engine/piece_digest.h"

struct attempt;

struct repair_query {
    uint32_t destination, length;
    uint64_t offset;
};

struct pending_repairs {
    /* Of the engine's first damaged piece: */
    bool asked; /* for the next part, */
    uint64_t asked_at;
    uint32_t have; /* bytes */
    struct piece_mark mark;
    struct piece_states states;
    uint32_t tries, repaired; /* of all pieces */
    /* What others have asked for, in order; at most one of each. */
    struct repair_query *query;
    uint32_t queries;
};

void pending_repairs_free(struct attempt *x);
/* How many pieces have come again here. */
uint32_t pending_repairs_count(const struct attempt *x);

#endif
