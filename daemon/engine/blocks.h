/* Where the blocks of one node come from (source) and go to (sink): a generated pattern, folders,
 * later a program's own memory.
 *
 * Engines call size() and read(), write() and pending() only; the rest is for exchanges, and NULL where a
 * group lends its memory (daemon/group).
 *
 * Nothing here waits. What cannot be done at once is begun, and block_events tell when to ask again;
 * no event is ever raised from inside a call to the source or sink. */
#ifndef TORUSD_ENGINE_BLOCKS_H
#define TORUSD_ENGINE_BLOCKS_H

#include "daemon/base/slab.h"
#include "daemon/engine/arrived.h"
#include "proto/error.h"

struct block_events {
    void *context;
    /* Something that was pending is done: ask again. */
    void (*wake)(void *context);
    /* It cannot go on. At most once. */
    void (*failed)(void *context, const struct error *e);
    /* Its close() had returned false: now nothing of it is left to do. The last event. */
    void (*closed)(void *context);
};

struct source;
struct sink;

struct source_ops {
    /* Whether the blocks have been found and their sizes are known (wake follows if not). */
    bool (*opened)(struct source *s);

    /* How blocks are cut, said once between opened() and the first read: in each round,
     * `round_bytes` of a block are split into `segments` segments of run_bytes() each, the last may
     * be shorter; each segment is read front to back, round after round. Where the source is `even`, what
     * a round has of a block is split like that, however much it is. Returns 0, or -1 with *e.
     */
    int (*lay_out)(struct source *s, uint64_t round_bytes, uint32_t segments, struct error *e);

    /* Bytes of the block for a destination that are not skipped; once opened. */
    uint64_t (*size)(struct source *s, uint32_t destination);

    /* Bytes of that block from `offset` on, at most `most` of them; each block is read once, front
     * to back. Returns 1 with an extent whose reference the caller drops; 0 if they are not there
     * yet (wake follows); -1 with *e. */
    int (*read)(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                struct extent *out, struct error *e);

    /* NULL, or bytes of that block that have been read before, also after finish(): 1 with *bytes, good until
     * the next call; 0 if they are not there yet (wake follows: ask for the same again); -1 with *e. */
    int (*again)(struct source *s, uint32_t destination, uint64_t offset, uint32_t length,
                 const uint8_t **bytes, struct error *e);

    /* Everything has been read: check that what was sent is what the source held when it was opened.
     * Returns true when that is so; else wake or failed follows. */
    bool (*finish)(struct source *s);

    /* Frees it. Returns true, or false if operations are under way: closed() follows. No other
     * event does. */
    bool (*close)(struct source *s);

    /* NULL, or a digest of what the block was found to be when the source was opened, its contents but for:
     * a source that is opened later and has the same has not been changed meanwhile. 0: it was not looked at. */
    uint64_t (*mark)(const struct source *s, uint32_t destination);
};

/* Files that an exchange did not move although somebody may think that it has. */
struct unmoved {
    uint64_t missing; /* not there, and taken for empty, */
    uint64_t unused;  /* or there, and named after no node */
};

struct source {
    const struct source_ops *ops;
    bool sized; /* each block has a size of its own; else all have the one that was asked for */
    /* NULL, or what is left out of its blocks, by destination, said before lay_out(); borrowed. Offsets then count
     * the other bytes only. */
    const struct arrived *skips;
    bool even;              /* said then, too: see lay_out() */
    struct unmoved unmoved; /* known once opened */
};

/* For sources: how much is to be read of a block that has so many bytes, */
static inline uint64_t source_left(const struct source *s, uint32_t destination, uint64_t size)
{
    return s->skips != NULL ? size - arrived_bytes(s->skips, destination) : size;
}

/* and which byte of the block is meant with an offset. Returns how many follow each other from there on; 0: there are
 * not so many. */
static inline uint64_t source_place(const struct source *s, uint32_t destination, uint64_t size,
                                    uint64_t offset, uint64_t *place)
{
    if (s->skips != NULL)
        return arrived_missing(s->skips, destination, size, offset, place);
    *place = offset;
    return offset < size ? size - offset : 0;
}

/* What is compared with what was sent, for the result to be called verified. */
enum check {
    CHECK_NOTHING,  /* there are no blocks */
    CHECK_DIGEST,   /* digests of all pieces (piece_digest.h), also summed over all nodes */
    CHECK_CONTENTS, /* every byte */
};

struct sink_ops {
    /* Whether the target can be written (wake follows if not); and, after lay_out(), whether the first
     * write may come. */
    bool (*opened)(struct sink *s);

    /* As the source's. */
    int (*lay_out)(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e);

    /* The next bytes of the block from `origin`, which come front to back; or some that were damaged, again,
     * when nothing is pending. Takes a reference of its
     * own where it needs one. Returns 0, or -1 with *e. */
    int (*write)(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                 struct error *e);

    /* Which byte of the whole block write() takes for `offset`; NULL: that one. */
    uint64_t (*place)(const struct sink *s, uint32_t origin, uint64_t offset);

    /* Bytes taken in that are not yet where they belong (wake follows when it becomes 0). */
    uint64_t (*pending)(struct sink *s);

    /* Everything has come: make it last. Returns true when that is done (wake follows if not). */
    bool (*finish)(struct sink *s);

    /* Durable sinks: puts the finished result under its final name. Returns 1 when it is there; 0 if
     * that has begun (wake follows: ask again); -1 with *e if it could not: the result stays under
     * its temporary name, for storage.resolve(). */
    int (*commit)(struct sink *s, struct error *e);

    /* Frees it. What was not committed is removed, unless `keep` (in doubt). Returns true, or false
     * if operations are under way: closed() follows when nothing is left to remove. No other event
     * does. */
    bool (*close)(struct sink *s, bool keep);

    /* NULL if it cannot: its exchange may begin anew (storage.h). From now on events go there; what has been written
     * stays, and what is being written goes on, until it is handed to the next attempt, or closed. Returns false if
     * it has failed and can only be closed: events go where they went. May be called again. */
    bool (*park)(struct sink *s, const struct block_events *events);

    /* NULL, or, before lay_out() of a next attempt: so many bytes of the block from `origin` may be there already,
     * what is behind them goes. */
    void (*limit)(struct sink *s, uint32_t origin, uint64_t size);
};

struct sink {
    const struct sink_ops *ops;
    bool durable; /* there is a result to commit */
    enum check check;
};

/* sink_ops.pending where everything is in its place as soon as it is written. */
static inline uint64_t sink_never_pending(struct sink *s)
{
    (void)s;
    return 0;
}

/* As sink_ops.place(). */
static inline uint64_t place_in_block(const struct sink *s, uint32_t origin, uint64_t offset)
{
    return s->ops->place != NULL ? s->ops->place(s, origin, offset) : offset;
}

/* Bytes from the start of one segment of a round to that of the next; UINT64_MAX of one alone. */
static inline uint64_t run_bytes(uint64_t round_bytes, uint32_t segments)
{
    if (segments <= 1)
        return UINT64_MAX;
    return round_bytes / segments + (round_bytes % segments != 0);
}

#endif
