#include "daemon/torusd/engine/streaming/sending.h"

#include "daemon/torusd/engine/streaming/own_block.h"
#include "daemon/torusd/engine/streaming/pieces.h"
#include "daemon/torusd/engine/streaming/rounds.h"

#define PIECES_A_FRAME 448u /* bounds the head; the receiver unpacks it without allocating */

/* Removes a piece from its queue, in which it is the first one of its urgency. */
static void dequeue_piece(struct streaming *s, struct streaming_round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    queues_take(&r->queues, p->out, p->ahead);
}

/* Loads up to `most` bytes of a piece into the frame. Returns how many; 0 if there are none yet. */
static uint32_t move_piece_bytes(struct streaming *s, struct streaming_round *r, uint32_t index,
                                 uint32_t most, struct outgoing *frame)
{
    const struct passage *p = &s->passages->passage[index];
    struct streaming_flow *flow = &r->flow[index];

    if (p->in != PASSAGE_HERE)
        return frame_buffer_load(&s->buffer, &flow->hold, flow->sent, NULL, most, frame);
    if (s->base.set.gather)
        return streaming_move_shared(s, r, index, most, frame);
    if (!streaming_predecessor_read(s, r, index))
        return 0;
    const struct block_piece piece = streaming_piece(s, r, index);
    return frame_buffer_load_own(&s->buffer, &piece, flow->sent, streaming_mark(r, index), most,
                                 frame);
}

/* Puts a piece aside for which the source has no bytes: until streaming_wake(), or in an allgather until
 * another port reads bytes of it. */
static void stall_piece(struct streaming *s, struct streaming_round *r, uint32_t index)
{
    if (s->base.set.gather) {
        r->starved = true;
        return;
    }
    (void)queues_add(&r->queues, streaming_stalled_port(s), 0, index);
}

struct streaming_filling {
    uint32_t pieces, sizes, digests;
    uint32_t piece[PIECES_A_FRAME], size[PIECES_A_FRAME];
    uint64_t digest[PIECES_A_FRAME];
};

/* Adds the available bytes of a piece, as many as fit. Returns whether the frame may take another piece:
 * only the last piece of a frame may be incomplete. */
static bool add_leaving_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                              struct outgoing *frame, struct streaming_filling *filling)
{
    const struct passage *p = &s->passages->passage[index];
    struct streaming_flow *flow = &r->flow[index];
    bool own = p->in == PASSAGE_HERE;
    uint32_t there = (own ? flow->length : flow->arrived) - flow->sent;
    uint32_t most = frame_buffer_fits(frame, s->fill, there);
    uint32_t moved = most > 0 ? move_piece_bytes(s, r, index, most, frame) : 0;

    flow->sent += moved;
    /* the source has no bytes yet, or the engine has failed */
    if (moved == 0 && flow->length > 0) {
        dequeue_piece(s, r, index);
        stall_piece(s, r, index);
        return true;
    }
    filling->piece[filling->pieces++] = p->place;
    if (!s->base.set.uniform && !flow->named)
        filling->size[filling->sizes++] = flow->length;
    s->base.counts.port[p->out].tx_blocks += !flow->named;
    flow->named = true;
    dequeue_piece(s, r, index);
    if (flow->sent == flow->length) {
        if (streaming_has_digest(r, index))
            filling->digest[filling->digests++] = r->mark[index].digest;
        streaming_count_finished(r, p);
        return true;
    }
    if (own || flow->sent < flow->arrived)
        streaming_enqueue(s, r, index); /* it queues behind pieces of the same urgency */
    return false;
}

static void fill_streaming_frame(struct streaming *s, struct streaming_round *r, unsigned port,
                                 struct outgoing *frame, struct streaming_filling *filling)
{
    bool more = true;

    filling->pieces = filling->sizes = filling->digests = 0;
    while (more && frame->body_length < s->fill && filling->pieces < PIECES_A_FRAME &&
           frame->body.count < OUTGOING_MAX_EXTENTS && s->base.failure.code == ERROR_NONE) {
        uint32_t index = queues_peek(&r->queues, port);
        more = index != QUEUES_NONE && add_leaving_piece(s, r, index, frame, filling);
    }
}

/* Returns the next frame of this round, or NULL if nothing can leave now. */
static struct outgoing *next_frame_of_streaming_round(struct streaming *s,
                                                      struct streaming_round *r, unsigned port)
{
    struct outgoing *frame =
        queues_peek(&r->queues, port) != QUEUES_NONE ? frame_buffer_new_frame(&s->buffer) : NULL;
    struct streaming_filling filling;

    if (frame == NULL)
        return NULL;
    fill_streaming_frame(s, r, port, frame, &filling);
    const struct peer_message message = {
        .kind = PEER_STREAMED_DATA,
        .streamed_data = {.exchange = s->base.set.handle,
                          .round = (uint32_t)(r->base.number & ENGINE_ROUND_MASK),
                          .has_call = s->base.set.call != NULL,
                          .call = engine_call(&s->base),
                          .n_pieces = filling.pieces,
                          .n_sizes = filling.sizes,
                          .n_digests = filling.digests,
                          .pieces = filling.piece,
                          .sizes = filling.size,
                          .digests = filling.digest}};
    return frame_buffer_ship(&s->buffer, port, frame, &message, filling.pieces > 0);
}

struct outgoing *streaming_next(struct engine *engine, unsigned port)
{
    struct streaming *s = streaming_of(engine);
    struct streaming_round *r = streaming_next_round(s, s->base.rounds_finished);

    if (engine_has_lost(&s->base, port))
        return NULL;
    for (; r != NULL && s->base.failure.code == ERROR_NONE;
         r = streaming_next_round(s, r->base.number + 1)) {
        struct outgoing *frame = next_frame_of_streaming_round(s, r, port);
        if (frame == NULL)
            continue;
        s->base.counts.port[port].combined_messages++;
        streaming_finish_rounds(s);
        return frame;
    }
    return NULL;
}

void streaming_wake(struct engine *engine)
{
    struct streaming *s = streaming_of(engine);
    const unsigned stalled = streaming_stalled_port(s);
    struct streaming_round *r = streaming_next_round(s, engine->rounds_finished);

    for (; r != NULL; r = streaming_next_round(s, r->base.number + 1)) {
        uint32_t index = queues_peek(&r->queues, stalled);
        for (; index != QUEUES_NONE; index = queues_peek(&r->queues, stalled)) {
            queues_take(&r->queues, stalled, 0);
            streaming_enqueue_and_wake(s, r, index);
        }
        if (r->starved)
            streaming_requeue_starved(s, r);
    }
    streaming_finish_rounds(s);
}
