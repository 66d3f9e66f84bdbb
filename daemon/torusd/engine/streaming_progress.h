/* The state of a streaming engine, small functions on it, and how it describes its progress; for streaming.c. */
#pragma once

#include "daemon/torusd/engine/engine.h"
#include "daemon/torusd/engine/frame_buffer.h"
#include "daemon/torusd/engine/queues.h"
#include "daemon/torusd/engine/streaming.h"

/* The progress of one piece at this node. In an allgather several passages may send the same piece: each has
 * a flow, and the holds of all these flows refer to the same bytes. */
struct streaming_flow {
    uint32_t length;  /* bytes of the piece */
    uint32_t arrived; /* bytes received; of an own piece: bytes read, in an allgather only */
    uint32_t sent;    /* bytes that have left by the passage's port */
    bool begun;       /* its length is known */
    bool named;       /* a frame with it has left this node */
    bool verified;    /* it has arrived, and its digest matches */
    struct hold hold; /* of a relayed piece: bytes that have arrived and not left */
};

struct streaming_round {
    struct window_round base; /* left: flows that are not finished */
    struct cut_round cut;
    struct own_block own;
    struct streaming_flow *flow; /* by passage */
    struct piece_mark *mark;     /* by passage, if pieces have digests; else NULL */
    /* Items: flows, by port and hops still to go. The queue after those of the ports holds this node's own
     * flows for which the source had no bytes (streaming_stalled_port()). */
    struct queues queues;
    uint8_t *room;   /* for copies in the flows' holds */
    bool starved;    /* allgather: the source had no bytes for some own flows */
    uint32_t unread; /* allgather: pieces of the own block that are not read to their end */
};

struct streaming {
    struct engine base;
    const struct passages *passages;
    struct cut cut;
    struct frame_buffer buffer;
    unsigned ports;
    /* By port: bytes that a frame is filled up to, and one whose pieces end at the neighbour. */
    uint32_t fill[TORUS_MAX_PORTS], fill_last[TORUS_MAX_PORTS];
    struct round_window window;
    uint64_t *verified_end; /* with digests: by origin, where the last verified piece ends */
};

static inline struct streaming *streaming_of(struct engine *engine)
{
    return (struct streaming *)engine;
}

/* The queue of flows for which the source had no bytes. */
static inline unsigned streaming_stalled_port(const struct streaming *s)
{
    return s->ports;
}

/* Pieces with the longest path to go leave first. */
static inline void streaming_enqueue(struct streaming *s, struct streaming_round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    (void)queues_add(&r->queues, p->out, p->ahead, index);
}

/* Queues a flow that has bytes to send, and wakes its port. */
static inline void streaming_enqueue_and_wake(struct streaming *s, struct streaming_round *r,
                                              uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    if (queues_add(&r->queues, p->out, p->ahead, index))
        engine_wake_port(&s->base, p->out);
}

/* Counts a piece that is finished at this node. */
static inline void streaming_count_finished(struct streaming_round *r, const struct passage *p)
{
    r->base.left--;
    if (p->out == PASSAGE_HERE && p->segment == 0)
        r->base.delivered++;
}

/* Whether the passage sends the same bytes as the passage before it. */
static inline bool streaming_shares_piece(const struct streaming *s, uint32_t index)
{
    return s->base.set.gather && s->passages->joins[index];
}

/* Allgather: adds bytes that the first of several passages of the same piece has received to the other ones.
 * `at` is how many bytes had arrived before. */
static inline void streaming_share_bytes(struct streaming *s, struct streaming_round *r,
                                         uint32_t first, uint32_t at, const struct extent *bytes)
{
    for (uint32_t i = first + 1; i < s->passages->count && streaming_shares_piece(s, i); i++) {
        struct streaming_flow *flow = &r->flow[i];
        frame_buffer_put(&s->buffer, &flow->hold, at, bytes);
        flow->arrived = at + bytes->length;
    }
}

/* Whether the piece of the same passage in the previous round has been read: sources are read front to
 * back. */
static inline bool streaming_predecessor_read(const struct streaming *s,
                                              const struct streaming_round *r, uint32_t index)
{
    const struct streaming_round *before;

    if (r->base.number == s->base.rounds_finished)
        return true;
    before = round_window_find(&s->window, r->base.number - 1);
    if (before == NULL)
        return true;
    const struct streaming_flow *flow = &before->flow[index];
    return (s->base.set.gather ? flow->arrived : flow->sent) == flow->length;
}

/* --- how blocks are cut: where pieces begin, and their digests --- */

/* Returns the size of the block to which this piece belongs; the block is this node's own, or all have the
 * same size. */
static inline uint64_t streaming_block_size(const struct streaming *s, const struct passage *p)
{
    const struct engine_setup *set = &s->base.set;

    if (set->uniform)
        return set->block_bytes;
    return set->source->ops->size(set->source, set->gather ? s->passages->rank : p->destination);
}

/* Returns how a block that begins or ends at this node is cut. */
static inline struct cut_round
streaming_cut(const struct streaming *s, const struct streaming_round *r, const struct passage *p)
{
    const struct engine_setup *set = &s->base.set;
    struct cut cut = s->cut;

    if (set->incoming == NULL || set->incoming[p->source] == ENGINE_NOT_TOLD)
        return r->cut;
    cut.uniform = true;
    cut.least = 0; /* no piece is longer than one of the largest block */
    cut.block_bytes =
        p->out == PASSAGE_HERE ? set->incoming[p->source] : streaming_block_size(s, p);
    return cut_round(&cut, engine_round(&s->base, r->base.number));
}

/* Returns where a piece begins in its block. */
static inline uint64_t streaming_piece_begin(const struct streaming *s,
                                             const struct streaming_round *r,
                                             const struct passage *p)
{
    const struct cut_round cut = streaming_cut(s, r, p);

    return cut_begin(&cut, p->segment);
}

/* Returns the name and place of a piece. */
static inline struct block_piece streaming_piece(const struct streaming *s,
                                                 const struct streaming_round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    return (struct block_piece){.source = p->source,
                                .destination = s->base.set.gather ? p->source : p->destination,
                                .begin = streaming_piece_begin(s, r, p),
                                .length = r->flow[index].length};
}

/* Returns the mark of a piece; NULL if pieces have no digests. */
static inline struct piece_mark *streaming_mark(const struct streaming_round *r, uint32_t index)
{
    return r->mark != NULL ? &r->mark[index] : NULL;
}

/* Whether a piece carries a digest. */
static inline bool streaming_has_digest(const struct streaming_round *r, uint32_t index)
{
    return r->mark != NULL && piece_has_digest(r->flow[index].length);
}

/* --- progress --- */

/* engine_ops.describe */
void streaming_describe(const struct engine *engine, char *text, size_t size);

/* engine_ops.arrived */
void streaming_arrived(const struct engine *engine,
                       void (*tell)(void *context, uint32_t origin, uint64_t begin, uint64_t end),
                       void *context);

/* engine_ops.waits */
void streaming_waits(const struct engine *engine, enum engine_wait *port);
