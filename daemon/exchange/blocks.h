/* Where the blocks of one node come from (source) and go to (sink): a generated pattern, folders,
 * later a program's own memory.
 *
 * Whatever cannot be done at once is reported through block_events; an event is never raised from
 * inside a call to the source or sink. */
#ifndef TORUSD_EXCHANGE_BLOCKS_H
#define TORUSD_EXCHANGE_BLOCKS_H

#include "daemon/base/error.h"
#include "daemon/base/slab.h"

struct block_events {
    void *context;
    /* Something that was pending is done: ask again. */
    void (*wake)(void *context);
    void (*failed)(void *context, const struct error *e);
};

struct source;
struct sink;

struct source_ops {
    /* Bytes of the block for a destination. */
    uint64_t (*size)(struct source *s, uint32_t destination);

    /* Bytes of that block from `offset` on, at most `most` of them; each block is read once, front
     * to back. Returns 1 with an extent whose reference the caller drops; 0 if they are not there
     * yet (wake follows); -1 with *e. */
    int (*read)(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                struct extent *out, struct error *e);

    /* When everything has been read: 0 if what was sent is what the source held at prepare, else
     * -1 with *e. Adds the blocks' digests to *digest. */
    int (*check)(struct source *s, uint64_t *digest, struct error *e);

    /* Frees it; with operations under way it does so later. No event follows. */
    void (*close)(struct source *s);
};

struct source {
    const struct source_ops *ops;
};

struct sink_ops {
    /* The next bytes of the block from `origin`, which come front to back. Takes a reference of its
     * own where it needs one. Returns 0, or -1 with *e. */
    int (*write)(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                 struct error *e);

    /* Bytes taken in that are not yet where they belong (wake follows when it becomes 0). */
    uint64_t (*pending)(struct sink *s);

    /* Everything has come: make it last. Returns true when that is done (wake follows else). */
    bool (*finish)(struct sink *s);

    /* Sum of the blocks' digests; after finish. */
    uint64_t (*digest)(struct sink *s);

    /* Puts the result under its final name. Returns 0, or -1 with *e. */
    int (*commit)(struct sink *s, struct error *e);

    /* Frees it; with operations under way it does so later. No event follows. What was not
     * committed is removed, unless `keep` (in doubt). */
    void (*close)(struct sink *s, bool keep);
};

struct sink {
    const struct sink_ops *ops;
};

#endif
