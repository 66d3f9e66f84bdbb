/* Sources provide the blocks that a node sends; sinks take the blocks that it receives. There are sources and
 * sinks for generated blocks, folders, and the memory of programs.
 *
 * Engines call size(), read(), write() and pending() only. The other functions are for exchanges, and are
 * NULL for the memory of groups (daemon/torusd/group).
 *
 * No function blocks. A function that cannot finish at once starts the work, and block_events tell when to
 * call it again. No event is raised from inside a call to the source or sink. */
#pragma once

#include "daemon/lib/base/slab.h"
#include "daemon/torusd/engine/arrived.h"
#include "proto/error.h"

struct block_events {
    void *context;
    /* A pending operation is done: ask again. */
    void (*wake)(void *context);
    /* The source or sink cannot continue. At most once. */
    void (*failed)(void *context, const struct error *e);
    /* close() had returned false, and now everything is done. The last event. */
    void (*closed)(void *context);
};

struct source;
struct sink;

struct source_ops {
    /* Whether the blocks have been found and their sizes are known (wake follows if not). */
    bool (*opened)(struct source *s);

    /* Sets how blocks are cut; called once, between opened() and the first read. Each round takes
     * `round_bytes` of a block, split into `segments` segments of run_bytes() each, the last of which may be
     * shorter. Each segment is read front to back, round after round. If the source is `even`, the segments
     * of a round are equally long even if the block has fewer bytes in that round. Returns 0, or -1 with *e.
     */
    int (*lay_out)(struct source *s, uint64_t round_bytes, uint32_t segments, struct error *e);

    /* Returns how many bytes the block for a destination has, without skipped ones; call it once opened. */
    uint64_t (*size)(struct source *s, uint32_t destination);

    /* Reads at most `most` bytes of that block from `offset` on; each block is read once, front to back.
     * Returns 1 with an extent whose reference the caller drops; 0 if the bytes are not there yet (wake
     * follows); -1 with *e. */
    int (*read)(struct source *s, uint32_t destination, uint64_t offset, uint32_t most,
                struct extent *out, struct error *e);

    /* NULL, or reads bytes of that block that have been read before, also after finish(). Returns 1 with
     * *bytes, valid until the next call; 0 if they are not there yet (wake follows: ask for the same bytes
     * again); -1 with *e. */
    int (*reread)(struct source *s, uint32_t destination, uint64_t offset, uint32_t length,
                  const uint8_t **bytes, struct error *e);

    /* To be called when everything has been read: checks that the blocks have not changed since the source
     * was opened. Returns true if they have not; else wake or failed follows. */
    bool (*finish)(struct source *s);

    /* Frees the source. Returns true, or false if operations are under way: then closed() follows, and no
     * other event. */
    bool (*close)(struct source *s);

    /* NULL, or returns a digest of the attributes that the block had when the source was opened, not of its
     * contents. If a source that is opened later returns the same digest, the block has not changed in
     * between. 0: not known. */
    uint64_t (*mark)(const struct source *s, uint32_t destination);
};

/* Files that an exchange did not move, although its user may expect that it moved them. */
struct unmoved {
    uint64_t missing; /* files that are missing, and count as empty blocks */
    uint64_t unused;  /* files whose names are not ranks of nodes */
};

struct source {
    const struct source_ops *ops;
    bool irregular; /* blocks have sizes of their own; else all have the size that was asked for */
    /* NULL, or the bytes that are skipped, by destination; set before lay_out(); borrowed. Offsets then
     * count only the other bytes. */
    const struct arrived *skips;
    bool even;              /* see lay_out(); set before it */
    struct unmoved unmoved; /* known once opened */
};

/* For sources: returns how many bytes of a block of `size` bytes are to be read. */
static inline uint64_t source_left(const struct source *s, uint32_t destination, uint64_t size)
{
    return s->skips != NULL ? size - arrived_of(s->skips, destination)->bytes : size;
}

/* For sources: sets *place to the offset in the block, skipped bytes included, of the byte at `offset`.
 * Returns how many bytes follow each other from there; 0: `offset` is at the end or behind it. */
static inline uint64_t source_place(const struct source *s, uint32_t destination, uint64_t size,
                                    uint64_t offset, uint64_t *place)
{
    if (s->skips != NULL)
        return intervals_missing(arrived_of(s->skips, destination), size, offset, place);
    *place = offset;
    return offset < size ? size - offset : 0;
}

/* What must be compared with the sent data before a result is called verified. */
enum check {
    CHECK_NOTHING,  /* there are no blocks */
    CHECK_DIGEST,   /* digests of all pieces (piece_digest.h), also summed over all nodes */
    CHECK_CONTENTS, /* every byte */
};

struct sink_ops {
    /* Whether the target can be written (wake follows if not); after lay_out(), whether write() may be
     * called. */
    bool (*opened)(struct sink *s);

    /* As the source's. */
    int (*lay_out)(struct sink *s, uint64_t round_bytes, uint32_t segments, struct error *e);

    /* Writes bytes of the block from `origin`: the next bytes, front to back; or, when nothing is pending,
     * bytes that replace damaged ones. Takes its own reference to the bytes if it needs one. Returns 0, or -1
     * with *e. */
    int (*write)(struct sink *s, uint32_t origin, uint64_t offset, const struct extent *piece,
                 struct error *e);

    /* NULL, or returns where write() puts the byte at `offset` of the block from `origin`, and sets *room to how many
     * bytes of it follow each other there, at least 1; NULL: it puts them nowhere, or has more to do with them. If write()
     * gets bytes that are there already, it does not copy them. */
    uint8_t *(*memory)(struct sink *s, uint32_t origin, uint64_t offset, uint32_t *room);

    /* Returns the offset in the whole block of the byte that write() calls `offset`. NULL: they are the
     * same. */
    uint64_t (*place)(const struct sink *s, uint32_t origin, uint64_t offset);

    /* Returns how many bytes write() has taken that are not in their place yet (wake follows when there are
     * none). */
    uint64_t (*pending)(struct sink *s);

    /* To be called when everything has been written: makes the output durable. Returns true when that is
     * done (wake follows if not). */
    bool (*finish)(struct sink *s);

    /* Durable sinks: puts the finished result under its final name. Returns 1 when it is there; 0 if that
     * has started (wake follows: ask again); -1 with *e if it failed: the result keeps its temporary name,
     * for storage.resolve(). */
    int (*commit)(struct sink *s, struct error *e);

    /* Frees the sink. Output that was not committed is removed, unless `keep` (in doubt). Returns true, or
     * false if operations are under way: then closed() follows when nothing is left to remove, and no other
     * event. */
    bool (*close)(struct sink *s, bool keep);

    /* NULL, or keeps the output for the next attempt of the exchange (output_store.h). Events go to `events`
     * from now on. Written bytes stay, and writes under way continue, until the next attempt takes the sink,
     * or it is closed. Returns false if the sink has failed and can only be closed: then events go to the
     * same receiver as before. May be called again. */
    bool (*keep_output)(struct sink *s, const struct block_events *events);

    /* NULL, or whether, when the next attempt has taken the sink and it is open, what was written of the block from
     * `origin` is not there any more: then that block has to be written from its beginning. */
    bool (*lost)(struct sink *s, uint32_t origin);

    /* NULL, or says before lay_out() of the next attempt that the first `size` bytes of the block from
     * `origin` may stay; the bytes behind them are cut off. */
    void (*limit)(struct sink *s, uint32_t origin, uint64_t size);
};

struct sink {
    const struct sink_ops *ops;
    bool durable; /* there is a result to commit */
    enum check check;
};

/* sink_ops.pending for sinks whose write() puts bytes in their place at once. */
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

/* Returns the bytes from the start of one segment of a round to the start of the next; UINT64_MAX if there
 * is only one segment. */
static inline uint64_t run_bytes(uint64_t round_bytes, uint32_t segments)
{
    if (segments <= 1)
        return UINT64_MAX;
    return round_bytes / segments + (round_bytes % segments != 0);
}
