/* Which trees an attempt of a copy moves between which nodes, what the nodes have told about them, and the rounds in
 * which they are moved. All members of the group make the same plan, and fill it with the same facts (step_reports.h):
 * so they all know which calls follow. */
#pragma once

#include "daemon/torusd/copy/request.h"
#include "daemon/torusd/copy/tree_store.h"

/* --- the plan --- */

#define COPY_EVERY_NODE UINT32_MAX
#define COPY_CALL_MOST (4u * 1024u * 1024u) /* bytes of a call that moves data, and */
#define COPY_CALL_LEAST (64u * 1024u)       /* the least of a node that has little memory */
#define COPY_PAIRS_MOST 128u /* nodes of a copy in which each pair has trees of its own */

/* A tree: one node reads it, and one node or every node that takes part writes it. */
struct copy_tree {
    uint32_t reader, writer;       /* writer: COPY_EVERY_NODE, except the reader */
    uint32_t failed_turn;          /* of the part that has failed (moving.c); 0: none */
    struct error failed;           /* the reader's; then no node puts the tree in place */
    uint64_t size[TREE_DOCUMENTS]; /* bytes of the documents that are moved; 0: none */
    uint64_t stream;               /* bytes of the stream */
    uint64_t *place;               /* where its sources are, as tree_store says it */
    uint32_t places;
    struct intervals missing; /* of the stream, that any writer lacks */
    uint64_t *changed;        /* entries that are left out, because they have changed; ascending */
    uint32_t changes;
    char first_changed[256]; /* printable; "": none */
    struct tree_reader *r;   /* at the reader only; NULL: not open */
    bool broken;             /* at a writer: the reader has failed while it sent the stream */
};

/* A tree at a node that writes it. */
struct copy_end {
    uint32_t node, tree; /* tree: its number */
    uint32_t failed_turn;
    struct error error;
    uint8_t *wanted; /* compare() wants digests of this; a copy */
    size_t wanted_length;
    uint8_t *going; /* dry_run: paths that would be removed, as tree_store says them; a copy */
    size_t going_length;
    uint64_t granularity; /* of times there, nanoseconds; 0: not told */
    struct tree_report report;
    struct tree_writer *w;       /* at this node only; NULL: not open */
    const struct interval *span; /* what is missing here, owned by the writer */
    uint32_t spans;
};

struct copy_plan {
    struct copy_tree *tree;
    struct copy_end *end;
    uint32_t trees, ends;
    uint32_t *absent; /* nodes that would take part, but are not members */
    uint32_t absents;
    bool told;                /* step reports have what COPY_MORE_MINOR has added */
    bool wants;               /* any node wants digests */
    uint64_t left_out;        /* by all readers */
    char first_left_out[256]; /* printable; "": none */
    uint64_t links_out;       /* links that lead out of the copy, of all readers */
    char first_link_out[256];
    uint32_t call_bytes; /* the least that a member can take at once */
};

/* Makes the plan for these nodes, without those that are gone (by rank; NULL: none). Returns 0, or -1 with *e: the node
 * that everything comes from or goes to is gone, all others are, or there are too many (ERROR_LINK, ERROR_REFUSED,
 * ERROR_MEMORY). The caller gives *p to copy_plan_free() in any case. */
int copy_plan_make(struct copy_plan *p, const struct copy_request *request, uint32_t nodes,
                   const bool *gone, struct error *e);
/* Frees the plan; readers and writers must be closed. */
void copy_plan_free(struct copy_plan *p);

/* Whether there is one tree, which every other node writes. */
static inline bool copy_plan_goes_to_all(const struct copy_plan *p)
{
    return p->tree[0].writer == COPY_EVERY_NODE;
}

/* Why nothing is put in place at this end; NULL: nothing has failed. */
const struct error *copy_end_failed(const struct copy_plan *p, const struct copy_end *end);

/* --- the rounds in which documents, or what is missing of the streams, are moved: a round is one call of the group
 * --- */

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

/* `call_bytes`: what a node can have in its memory for a round, sent and received together. Returns 0, or -1 without
 * memory; the caller gives *r to copy_rounds_free() in any case. */
int copy_rounds_init(struct copy_rounds *r, const struct copy_plan *p, enum moved what,
                     uint32_t nodes, uint32_t call_bytes);
void copy_rounds_free(struct copy_rounds *r);

/* Computes the next round: r->piece, in the order of the trees. Returns false if everything has been moved. */
bool copy_rounds_next(struct copy_rounds *r);
