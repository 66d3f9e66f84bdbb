/* A call's memory as the source and sink of its engine.
 *
 * What is sent lies in the program's memory, to which extents refer without a copy, or in a copy of
 * the daemon's own. Behind each block comes its digest, made while the block is read; what arrives is
 * checked against it when the block is there. Vectors of reductions have none: their
 * pieces are checked on every channel. */
#ifndef TORUSD_GROUP_DATA_BLOCKS_H
#define TORUSD_GROUP_DATA_BLOCKS_H

#include "daemon/engine/blocks.h"
#include "daemon/engine/digest.h"
#include "daemon/group/data/checked_call.h"
#include "daemon/group/data/digests.h"
#include "daemon/group/data/overwritten.h"

enum layout {
    LAYOUT_EXCHANGE, /* a block for each member, and one from each */
    LAYOUT_GATHER,   /* one block for all, and one from each that has one */
    LAYOUT_VECTOR,   /* one vector, an equal part for each owner: single tree: all of it */
};

struct blocks {
    struct source source;
    struct sink sink;
    const struct checked *what;
    enum layout layout;
    const struct members *members; /* all below is by member */
    bool single;                   /* a vector with one owner */
    bool digests;                  /* blocks have them */
    uint32_t element;
    struct slab *sent;   /* what is read refers to it */
    const uint8_t *from; /* what is sent, */
    uint64_t *from_at;   /* and where each block begins there; NULL: see layout */
    uint8_t *digest;     /* in `sent`: by block, as they are sent */
    bool *digested;
    uint32_t senders; /* blocks that are sent */
    struct passing_digest *passing_out, *passing_in;
    uint8_t *to;
    uint64_t *got; /* bytes, by origin */
    uint8_t *got_digest;
    bool copied;                     /* what is sent is in `sent` */
    bool kept;                       /* what comes is discarded */
    uint64_t skip;                   /* bytes at the beginning of each block that are not moved */
    struct overwritten *overwritten; /* of a vector in place */
    bool ready;                      /* false: reads wait */
    uint64_t bytes_in, bytes_out;    /* from and for others */
};

struct blocks_options {
    enum layout layout;
    bool digests;
    bool
        copy; /* what is sent is copied first, unless it is a vector: engines copy what they read */
    uint64_t skip; /* what does not come again of each block */
};

/* Borrows `what` and `members`. Returns 0, or -1 with *e and nothing to free. */
int blocks_init(struct blocks *b, const struct checked *what, const struct members *members,
                const struct blocks_options *options, struct error *e);
void blocks_free(struct blocks *b);

/* Whether blocks_init() has been called, and blocks_free() has not. */
static inline bool blocks_are_there(const struct blocks *b)
{
    return b->what != NULL;
}

/* Bytes that travel of a block of this size. */
static inline uint64_t blocks_wire(const struct blocks *b, uint64_t size)
{
    return size > 0 && b->digests ? size + DIGEST_SIZE : size;
}

/* Bytes that are to come of the block from a member, as they travel. */
uint64_t blocks_coming(const struct blocks *b, uint32_t member);

/* Whether every block has come whole. Returns 0, or -1 with *e. */
int blocks_check(const struct blocks *b, struct error *e);

/* Its call is complete here and may be made again: what is sent then is in a copy, what comes is
 * discarded. Of a vector that all get it is the result. Returns 0, or -1 with *e. */
int blocks_keep(struct blocks *b, struct error *e);

/* Its call is made again, with what was sent. */
void blocks_again(struct blocks *b);

/* It contributes nothing but zeros. Returns 0, or -1 with *e. */
int blocks_contribute_nothing(struct blocks *b, struct error *e);

#endif
