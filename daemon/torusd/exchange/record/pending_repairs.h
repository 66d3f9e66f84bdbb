/* Pieces of blocks that arrived damaged here, and pieces that other nodes have asked for again. */
#pragma once

#include "daemon/torusd/engine/piece_digest.h"

struct attempt;

struct repair_query {
    uint32_t destination, length;
    uint64_t offset;
};

struct pending_repairs {
    /* State of the engine's first damaged piece: */
    bool asked; /* a request for its next part is open */
    uint64_t asked_at;
    uint32_t have; /* bytes of the piece that have been repaired */
    struct piece_mark mark;
    struct piece_states states;
    uint32_t tries, repaired; /* counted over all pieces */
    /* Requests of other nodes, in order of arrival; at most one from each node. */
    struct repair_query *query;
    uint32_t queries;
};

/* Frees the attempt's repairs, if there are any. */
void pending_repairs_free(struct attempt *x);
/* Returns the number of pieces that were repaired here. */
uint32_t pending_repairs_count(const struct attempt *x);
