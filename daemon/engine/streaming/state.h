/* What the files of the streaming engine share: the state of an engine, and small functions on it. */
#ifndef TORUSD_ENGINE_STREAMING_STATE_H
#define TORUSD_ENGINE_STREAMING_STATE_H

#include "daemon/engine/frame_buffer.h"
#include "daemon/engine/queues.h"
#include "daemon/engine/round_window.h"
#include "daemon/engine/streaming.h"

/* Where one piece stands at this node. In an allgather each of the passages that have it in common
 * has a flow, into whose hold come references to the same bytes. */
struct streaming_flow {
    uint32_t length, came, gone; /* came: of our own only in an allgather */
    bool begun;                  /* its length is known */
    bool named;                  /* it has been in a frame that left from here */
    bool sure;                   /* it has arrived, and its digest is right */
    struct hold hold;            /* of a piece that passes through: what came and is not gone */
};

struct streaming_round {
    struct window_round base; /* left: flows that are not through */
    struct cut_round cut;
    struct own_block own;
    struct streaming_flow *flow; /* by passage */
    struct piece_mark *mark;     /* the same, if pieces have digests; else NULL */
    /* Items: flows, by port and hops still to go. Behind the ports: our own flows that the source had
     * nothing for (streaming_stalled_port()). */
    struct queues queues;
    uint8_t *room;   /* for copies in the flows' holds */
    bool starved;    /* allgather: the source had nothing for some of our own flows */
    uint32_t unread; /* allgather: pieces of our own block that are not read to their end */
};

struct streaming {
    struct engine base;
    const struct passages *passages;
    struct cut cut;
    struct frame_buffer buffer;
    unsigned ports;
    uint32_t fill; /* bytes a frame is filled up to */
    struct round_window window;
    uint64_t *sure; /* with digests: by origin, where the last piece that is sure ends */
};

static inline struct streaming *streaming_of(struct engine *engine)
{
    return (struct streaming *)engine;
}

/* The round, if it is under way. */
static inline struct streaming_round *streaming_find_round(const struct streaming *s,
                                                           uint64_t number)
{
    return round_window_find(&s->window, number);
}

/* The oldest round under way from this number on. */
static inline struct streaming_round *streaming_next_round(const struct streaming *s,
                                                           uint64_t number)
{
    return round_window_next(&s->window, number);
}

/* The queue of what the source had nothing for. */
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

/* It has something to send. */
static inline void streaming_line_up(struct streaming *s, struct streaming_round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    if (queues_add(&r->queues, p->out, p->ahead, index))
        engine_wake_port(&s->base, p->out);
}

/* Nothing of this piece is left to do here. */
static inline void streaming_pass_through(struct streaming_round *r, const struct passage *p)
{
    r->base.left--;
    if (p->out == PASSAGE_HERE && p->segment == 0)
        r->base.delivered++;
}

/* Whether the passage has what it sends in common with the one before it. */
static inline bool streaming_joins(const struct streaming *s, uint32_t index)
{
    return s->base.set.gather && s->passages->joins[index];
}

/* Allgather: bytes that have come for the first of the passages that have them in common come for
 * the others, too. `at`: how many had come before. */
static inline void streaming_share_bytes(struct streaming *s, struct streaming_round *r,
                                         uint32_t first, uint32_t at, const struct extent *bytes)
{
    for (uint32_t i = first + 1; i < s->passages->count && streaming_joins(s, i); i++) {
        struct streaming_flow *flow = &r->flow[i];
        frame_buffer_put(&s->buffer, &flow->hold, at, bytes);
        flow->came = at + bytes->length;
    }
}

/* Whether the piece of the round before at the same place has been read: a source is read, and a
 * sink written, front to back. */
static inline bool streaming_predecessor_gone(const struct streaming *s,
                                              const struct streaming_round *r, uint32_t index)
{
    const struct streaming_round *before;

    if (r->base.number == s->base.rounds_finished)
        return true;
    before = streaming_find_round(s, r->base.number - 1);
    if (before == NULL)
        return true;
    const struct streaming_flow *flow = &before->flow[index];
    return (s->base.set.gather ? flow->came : flow->gone) == flow->length;
}

#endif
