/* The state of a streaming engine, and small functions on it, for all files of the engine. */
#pragma once

#include "daemon/torusd/engine/frame_buffer.h"
#include "daemon/torusd/engine/queues.h"
#include "daemon/torusd/engine/round_window.h"
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
    uint32_t fill; /* bytes a frame is filled up to */
    struct round_window window;
    uint64_t *verified_end; /* with digests: by origin, where the last verified piece ends */
};

static inline struct streaming *streaming_of(struct engine *engine)
{
    return (struct streaming *)engine;
}

/* Returns the round, or NULL if it is not under way. */
static inline struct streaming_round *streaming_find_round(const struct streaming *s,
                                                           uint64_t number)
{
    return round_window_find(&s->window, number);
}

/* Returns the oldest round under way from this number on, or NULL. */
static inline struct streaming_round *streaming_next_round(const struct streaming *s,
                                                           uint64_t number)
{
    return round_window_next(&s->window, number);
}

/* The queue of flows for which the source had no bytes. */
static inline unsigned streaming_stalled_port(const struct streaming *s)
{
    return s->ports;
}

/* Pieces with the longest way to go leave first. */
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
    before = streaming_find_round(s, r->base.number - 1);
    if (before == NULL)
        return true;
    const struct streaming_flow *flow = &before->flow[index];
    return (s->base.set.gather ? flow->arrived : flow->sent) == flow->length;
}
