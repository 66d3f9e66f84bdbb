/* The rounds in which documents, or what is missing of the streams, are moved: a round is one call of the group. All
 * members compute the same rounds from the plan. */
#pragma once

#include "daemon/torusd/copy/plan.h"

enum moved { MOVED_MANIFESTS, MOVED_DIGESTS, MOVED_STREAMS };

#define PIECE_HEAD 16u /* bytes in front of a piece (struct piece_head) */

/* A part of a tree's document, or of its missing ranges, that a round moves. */
struct copy_piece {
    uint32_t tree, length;
    uint64_t place; /* in the document, or in the sequence of all missing ranges */
};

struct copy_rounds {
    const struct copy_plan *plan;
    enum moved what;
    uint32_t nodes;             /* of the torus */
    uint32_t side;              /* bytes that a node can send in a round, or receive */
    uint64_t *moved;            /* by tree */
    uint32_t *sends, *receives; /* by node: trees that are not complete; then room in this round */
    uint32_t *length;           /* by tree: bytes in this round, without the head */
    struct copy_piece *piece;   /* of the last round */
    uint32_t pieces;
    uint32_t turn;  /* the tree that comes first in the next round */
    uint64_t bytes; /* of all rounds, without heads */
};

/* Returns how many bytes of a tree are moved. */
uint64_t copy_rounds_total(const struct copy_plan *p, enum moved what, uint32_t tree);

/* `call_bytes`: what a node can have in its memory for a round, sent and received together. Returns 0, or -1 without
 * memory; the caller gives *r to copy_rounds_free() in any case. */
int copy_rounds_init(struct copy_rounds *r, const struct copy_plan *p, enum moved what,
                     uint32_t nodes, uint32_t call_bytes);
void copy_rounds_free(struct copy_rounds *r);

/* Computes the next round: r->piece, in the order of the trees. Returns false if everything has been moved. */
bool copy_rounds_next(struct copy_rounds *r);
