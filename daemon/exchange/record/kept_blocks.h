/* What has arrived in attempts that were withdrawn, kept for the next one. */
#ifndef TORUSD_EXCHANGE_RECORD_KEPT_BLOCKS_H
#define TORUSD_EXCHANGE_RECORD_KEPT_BLOCKS_H

#include "daemon/engine/arrived.h"
#include "daemon/exchange/record/attempt.h"

/* A sink between two attempts: the context of its events. */
struct parked {
    struct sink *sink;
    struct parked **at;   /* who has it, */
    struct arrived *here; /* and what is lost with it */
};

/* A block, as has been told so far: bytes that it has, and that have arrived. */
struct resumed_pair {
    uint64_t whole, arrived;
};

/* An attempt that goes on where another one was: what has arrived since the first one does not come again. */
struct resumed {
    struct arrived here;  /* by origin: before this attempt; */
    struct arrived there; /* and by destination, of this node's blocks, as all have said */
    uint64_t bytes;       /* of others' blocks that have arrived here, */
    uint64_t all_bytes;   /* and everywhere */
    uint64_t *size;       /* by origin: of its block for this node; ENGINE_NOT_TOLD */
    uint64_t *elsewhere;  /* by origin: bytes of its blocks that have arrived at others */
    uint64_t *incoming;   /* by origin: bytes that are missing here */
    uint64_t went;        /* when the first attempt's `go` came; 0: nothing is left of that here */
    uint8_t *heard;       /* by node: from which sides its message has come */
    bool said;            /* what is here */
    bool wrapped;         /* own.sink leaves out what is here */
    /* Files: */
    struct resumed_pair
        *pairs;      /* root: by both nodes, of the first one's block for the second; or NULL */
    uint64_t *marks; /* by destination: source_ops.mark(); NULL: nothing has been moved */
    struct parked *parked; /* the sink of the attempt before, until it is open again */
};

/* How many spans of one block are told; more come again. */
uint32_t kept_blocks_spans_most(const struct attempt *x);
/* Bytes of a block; of files what has arrived is told exactly. */
uint64_t kept_blocks_bytes(const struct attempt *x);
/* The engine goes: what has arrived is noted. */
void kept_blocks_note(struct attempt *x);
/* Blocks are about to be closed: what has been noted is kept for the next attempt, with an output of files; then there
 * is no sink any more. */
void kept_blocks_keep(struct attempt *x);
/* There is no next attempt. */
void kept_blocks_drop(struct attempt *x);
/* Moves what is kept of the exchange whose first attempt had this id to *r. */
void kept_blocks_take(struct exchanges *all, const struct exchange_id *first, struct resumed *r);
void kept_blocks_free(struct exchanges *all);
/* Drops what waits too long for a next attempt, or for a node that is down. */
void kept_blocks_tick(struct exchanges *all, uint64_t now);
/* When that is to be done next. */
uint64_t kept_blocks_deadline(const struct exchanges *all);

#endif
