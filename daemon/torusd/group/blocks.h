/* A call's memory as the source and sink of its engine.
 *
 * The data to send lies in the program's memory, to which extents refer without a copy, or in a copy made by
 * the daemon. The digest of each block follows it, and is calculated while the block is read. The receiver
 * compares it when the whole block has arrived. Vectors of reductions have no such digests, because their
 * pieces are checked on every channel. */
#pragma once

#include <stdint.h>

#include "daemon/torusd/engine/blocks.h"
#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/group/digests.h"
#include "daemon/torusd/group/operations/operations.h"
#include "proto/error.h"

struct blocks {
    struct source source;
    struct sink sink;
    const struct checked_call *what;
    enum block_layout layout;
    const struct members *members; /* the fields below are indexed by member */
    bool single;                   /* a vector with one owner */
    bool digests;                  /* blocks have digests */
    struct slab *sent;   /* digests, and a copy of the data or a reference to its memory */
    const uint8_t *from; /* start of the data to send */
    uint64_t *from_at;   /* where each block begins behind `from`; NULL: as the layout says */
    uint8_t *digest;     /* in `sent`: the digests of the blocks to send, in their order */
    bool *digested;
    uint32_t senders; /* number of blocks to send */
    struct passing_digest *passing_out, *passing_in;
    uint8_t *to;
    uint8_t *whole; /* NULL, or where the block arrives of which this member keeps a part */
    uint64_t *got;  /* bytes received, by origin */
    uint8_t *got_digest;
    bool copied;                     /* the data to send is a copy in `sent` */
    bool kept;                       /* the call is complete: received data is discarded */
    bool discards;                   /* received data is discarded, because only the root gets it */
    uint64_t skip;                   /* bytes at the beginning of each block that are not moved */
    struct overwritten *overwritten; /* of a vector in place */
    bool ready;                      /* false: reads wait until it is true */
    uint64_t bytes_in, bytes_out;    /* received from and sent to other members */
};

struct blocks_options {
    bool single; /* a vector with one owner */
    bool digests;
    /* Copy the data to send first, except vectors, because their engines copy what they read. */
    bool copy;
    uint64_t skip; /* bytes at the beginning of each block that are not sent again */
};

/* Sets up the source and sink. Borrows `what` and `members`. Returns 0, or -1 with *e and nothing to free. */
int blocks_init(struct blocks *b, const struct checked_call *what, const struct members *members,
                const struct blocks_options *options, struct error *e);
/* Frees what *b holds. Call it only if blocks_are_there(). */
void blocks_free(struct blocks *b);

/* Whether blocks_init() was called, and blocks_free() was not. */
static inline bool blocks_are_there(const struct blocks *b)
{
    return b->what != NULL;
}

/* Returns how many bytes a block of this size has on the wire. */
static inline uint64_t blocks_wire(const struct blocks *b, uint64_t size)
{
    return size > 0 && b->digests ? size + DIGEST_SIZE : size;
}

/* Returns how many bytes this node expects of the block from a member, as on the wire. */
uint64_t blocks_expected(const struct blocks *b, uint32_t member);
/* Checks that every block has arrived completely, and gives the program the part that it keeps. Returns 0, or -1 with
 * *e. */
int blocks_end(struct blocks *b, struct error *e);
/* Prepares the blocks of a complete call for being made again: the data to send is in a copy, and received data
 * is discarded. If all members get the vector, its result is kept. Returns 0, or -1 with *e. */
int blocks_keep(struct blocks *b, struct error *e);
/* Prepares the blocks for sending the same data once more, but for the first `skip` bytes of each block, which all members
 * have. */
void blocks_rewind(struct blocks *b, uint64_t skip);
/* Makes this member contribute only zeros. Returns 0, or -1 with *e. */
int blocks_contribute_nothing(struct blocks *b, struct error *e);

/* Saves the parts of a vector in place that results overwrite, because a repeated call needs them. */

struct overwritten; /* a list; NULL: empty */

/* Frees what begins within the first `bytes` bytes of each block; UINT64_MAX: everything. */
void overwritten_forget(struct overwritten **list, uint64_t bytes);
/* Writes everything back and frees the list. */
void overwritten_restore(struct overwritten **list);
