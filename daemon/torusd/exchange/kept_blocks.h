/* Blocks that arrived in withdrawn attempts, kept for the next attempt. Times are nanoseconds of the router's
 * clock. */
#pragma once

#include "daemon/torusd/engine/arrived.h"
#include "daemon/torusd/exchange/attempt.h"

/* A sink between two attempts: the context of its events. */
struct kept_sink {
    struct sink *sink;
    struct resumed *of; /* what is lost if the sink fails; NULL: it is being closed */
};

/* The size of a block and how much of it has arrived, in bytes, as nodes have told. */
struct resumed_pair {
    uint64_t whole, arrived;
};

/* For an attempt that resumes an earlier one: blocks that have arrived since the first attempt are not sent
 * again. */
struct resumed {
    /* Between two attempts: */
    struct resumed *next;
    struct exchange_id id; /* of the first attempt */
    uint64_t until;        /* when this is dropped; ROUTER_NEVER for generated blocks */

    struct arrived here; /* by origin: what had arrived here before this attempt */
    /* By destination: what had arrived of this node's blocks, as the nodes have told. */
    struct arrived there;
    uint64_t bytes;      /* bytes of other nodes' blocks that had arrived here */
    uint64_t all_bytes;  /* bytes that had arrived on all nodes */
    uint64_t *size;      /* by origin: size of its block for this node, or ENGINE_NOT_TOLD */
    uint64_t *elsewhere; /* by origin: bytes of its blocks that had arrived at other nodes */
    uint64_t *incoming;  /* by origin: bytes that are missing here */
    /* When the first attempt's `go` arrived; 0: nothing of that attempt is kept here. */
    uint64_t go_at;
    uint8_t *heard; /* by node: its message arrived; 1: from a child, 2: from the parent */
    bool told;      /* this node has sent its message about what had arrived here */
    bool wrapped;   /* local.sink skips what had arrived here */
    /* Only for files: */
    /* Root: for each pair of nodes, the block of the first one for the second one; NULL: not known. */
    struct resumed_pair *pairs;
    uint64_t *marks;             /* by destination: source_ops.mark(); NULL: no file was moved */
    struct kept_sink *kept_sink; /* the sink of the attempt before, until it is open again */
};

/* Returns how many spans of one block a node tells; spans beyond that are sent again. */
uint32_t kept_blocks_spans_most(const struct attempt *x);
/* Returns the size of a block in bytes; UINT64_MAX for files, whose sizes differ and whose arrived spans are
 * told exactly. */
uint64_t kept_blocks_bytes(const struct attempt *x);
/* Notes what the engine has received, because the engine is about to be freed. */
void kept_blocks_note(struct attempt *x);
/* Keeps what was noted for the next attempt, with an unfinished output of files, because the attempt's blocks
 * are about to be closed. After that the attempt may have no sink. */
void kept_blocks_keep(struct attempt *x);
/* Frees what was noted, because there is no next attempt. */
void kept_blocks_drop(struct attempt *x);
/* Frees everything that is kept. */
void kept_blocks_free(struct exchanges *exchanges);
/* Frees what has waited too long for a next attempt, or waits for a node that is down. */
void kept_blocks_tick(struct exchanges *exchanges, uint64_t now);
/* Returns when kept_blocks_tick() must be called next. */
uint64_t kept_blocks_deadline(const struct exchanges *exchanges);

/* --- blocks of an attempt that resumes an earlier one; for any other attempt these functions do nothing --- */

/* Takes over what is kept at this node. Returns 0, or -1 with *e. */
int resumed_blocks_begin(struct attempt *x, struct error *e);
/* Makes the request ask for the kept output, and for source files that have not changed. */
void resumed_blocks_ask(const struct attempt *x, struct folder_request *request);
/* Makes the open source and sink skip what has arrived. Returns 0, or -1 with *e. */
int resumed_blocks_wrap(struct attempt *x, struct error *e);
/* To be called when source and sink are open. What no longer exists counts as not arrived. */
void resumed_blocks_opened(struct attempt *x);
/* Calculates what is missing, after all nodes have told what has arrived. Returns 0, or -1 with *e. */
int resumed_blocks_lay_out(struct attempt *x, struct error *e);
/* For generated blocks: calculates the largest missing block, and the missing bytes, at this node. */
void resumed_blocks_sizes(struct attempt *x);
/* For files, at the root, after all nodes have told: calculates the largest missing block on all nodes. Returns
 * 0, or -1 with *e. */
int resumed_blocks_largest(struct attempt *x, struct error *e);
