/* The state of a reducing engine, and its rounds: how they begin and end, and how they are cut; for reducing.c. */
#pragma once

#include "daemon/torusd/engine/chunks.h"
#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/engine/frame_buffer.h"
#include "daemon/torusd/engine/queues.h"
#include "daemon/torusd/engine/reducing.h"

/* One tree's piece in a round. Its chunks are numbered from 0, and processed in that order. */
struct reducing_piece {
    uint64_t begin; /* where the piece begins in the block */
    uint32_t length, chunks;
    uint32_t combined; /* chunks combined here, and passed on or delivered */
    uint32_t returned; /* chunks of the result that the parent has sent */
    uint32_t missing;  /* children without a waiting chunk */
    struct extent own; /* this node's part of the next chunk, as far as it has been read */
    uint32_t filled;
};

/* One child of a tree in a round. */
struct reducing_branch {
    uint32_t arrived;   /* chunks received from the child */
    struct chain up;    /* contributions that wait for the contributions of other children */
    struct chain down;  /* results that wait to leave */
    uint32_t delivered; /* results that have left */
};

struct reducing_round {
    struct window_round base; /* left: chunks to combine, receive and send down */
    uint64_t begin;
    bool stalled;                   /* the source had no bytes for one of the pieces */
    struct reducing_piece *piece;   /* by tree */
    struct reducing_branch *branch; /* by child */
    struct queues queues; /* items: trees whose next chunk can go up; then children, down */
};

struct reducing {
    struct engine base;
    struct reducing_options options;
    const struct reduction_trees *trees;
    struct frame_buffer buffer; /* for its frames */
    struct slab_writer writer;
    unsigned ports;
    uint32_t element; /* bytes */
    uint32_t chunk;   /* bytes of a chunk, except a piece's last; frames are filled up to this */
    struct chunks chunks;
    struct round_window window;
};

static inline struct reducing *reducing_of(struct engine *engine)
{
    return (struct reducing *)engine;
}

/* Whether the engine has failed. */
static inline bool reducing_has_failed(const struct reducing *s)
{
    return s->base.failure.code != ERROR_NONE;
}

/* Whether this node is the owner (the root) of a tree. */
static inline bool reducing_is_owner(const struct reduction_tree *tree)
{
    return tree->parent == REDUCTION_NO_PORT;
}

/* Returns how many bytes chunk number `chunk` of a piece has. */
static inline uint32_t reducing_chunk_length(const struct reducing *s,
                                             const struct reducing_piece *piece, uint32_t chunk)
{
    uint32_t before = chunk * s->chunk;

    return piece->length - before < s->chunk ? piece->length - before : s->chunk;
}

/* Urgencies of chunks up and down a tree: chunks with a longer path to go are more urgent. */
static inline uint32_t reducing_urgency_up(const struct reduction_trees *trees,
                                           const struct reduction_tree *tree)
{
    return trees->most_distance + tree->distance;
}

static inline uint32_t reducing_urgency_down(const struct reduction_trees *trees,
                                             const struct reduction_tree *tree)
{
    return trees->most_distance - tree->distance;
}

/* --- cutting: blocks into pieces, one for each tree and round, and pieces into chunks --- */

/* Returns how many bytes the tree's piece has in the round that begins at `begin` of the block, and sets
 * *at to where the piece begins in the block. Uses the setup, the trees and the element only. */
uint32_t reducing_piece_length(const struct reducing *s, uint64_t begin,
                               const struct reduction_tree *tree, uint64_t *at);

/* Returns how many bytes a chunk has, the same at all nodes: few compared with what a channel carries in a
 * round, so that the levels of a tree overlap; but at most as many as a frame may have. */
uint32_t reducing_choose_chunk(const struct engine_setup *set, const struct reduction_trees *trees,
                               uint32_t element);

/* --- rounds --- */

/* Returns the round's slot, and prepares it at its first use. NULL if there is no memory: the engine has
 * failed. */
struct reducing_round *reducing_open_round(struct reducing *s, uint64_t number);

/* Ends the rounds that are complete, the oldest first. */
void reducing_finish_rounds(struct reducing *s);

/* Frees what the slots of the window own. */
void reducing_free_rounds(struct reducing *s);
