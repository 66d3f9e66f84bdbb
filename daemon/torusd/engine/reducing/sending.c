#include "daemon/torusd/engine/reducing/sending.h"

#include "daemon/torusd/engine/reducing/combining.h"
#include "daemon/torusd/engine/reducing/frame_digest.h"
#include "daemon/torusd/engine/reducing/rounds.h"

#define PIECES_A_FRAME 448u /* bounds the head; the receiver unpacks it without allocating */

struct reducing_filling {
    struct outgoing *frame;
    uint32_t pieces;
    uint32_t piece[PIECES_A_FRAME];
};

static int add_chunk_bytes(struct reducing *s, struct outgoing *frame, const struct extent *bytes)
{
    if (extents_add(&frame->body, bytes->slab, bytes->data, bytes->length) != 0)
        return engine_no_memory(&s->base);
    frame->body_length += bytes->length;
    return 0;
}

/* Adds the tree's next chunk for the parent to the frame. Returns 1, or 0 if the source is not ready, or
 * the engine has failed. */
static int add_contribution(struct reducing *s, struct reducing_round *r, unsigned port,
                            uint32_t index, struct reducing_filling *filling)
{
    struct reducing_piece *piece = &r->piece[index];
    struct extent chunk;

    queues_take(&r->queues, port, reducing_urgency_up(s->trees, &s->trees->tree[index]));
    if (reducing_combine(s, r, index, &chunk) <= 0)
        return 0;
    int result = add_chunk_bytes(s, filling->frame, &chunk);
    chunk_drop(&chunk);
    s->base.counts.port[port].tx_blocks += piece->combined == 1;
    filling->piece[filling->pieces++] = s->trees->tree[index].place;
    reducing_combine_if_ready(s, r, index); /* the tree queues behind trees of the same urgency */
    if (piece->combined == piece->chunks)
        reducing_combine_if_ready(s, reducing_find_round(s, r->base.number + 1), index);
    return result == 0;
}

/* Adds the next chunk of a result for a child to the frame. */
static int add_result(struct reducing *s, struct reducing_round *r, unsigned port, uint32_t child,
                      struct reducing_filling *filling)
{
    const struct reduction_trees *trees = s->trees;
    const struct reduction_tree *tree = &trees->tree[trees->child[child].tree];
    struct reducing_branch *branch = &r->branch[child];
    struct extent chunk = chain_pop(&s->chunks, &branch->down);
    int result = add_chunk_bytes(s, filling->frame, &chunk);

    chunk_drop(&chunk);
    s->base.counts.port[port].tx_blocks += branch->delivered++ == 0;
    filling->piece[filling->pieces++] = reduction_down_out(trees, &trees->child[child]);
    queues_take(&r->queues, port, reducing_urgency_down(trees, tree));
    if (!chain_is_empty(&branch->down))
        (void)queues_add(&r->queues, port, reducing_urgency_down(trees, tree),
                         trees->count + child);
    r->base.left--;
    return result == 0;
}

static uint32_t next_item_length(const struct reducing *s, const struct reducing_round *r,
                                 uint32_t item)
{
    const struct reduction_trees *trees = s->trees;

    if (item < trees->count)
        return reducing_chunk_length(s, &r->piece[item], r->piece[item].combined);
    return chain_first(&s->chunks, &r->branch[item - trees->count].down)->length;
}

static void fill_reducing_frame(struct reducing *s, struct reducing_round *r, unsigned port,
                                struct reducing_filling *filling)
{
    const struct outgoing *frame = filling->frame;

    while (filling->pieces < PIECES_A_FRAME && frame->body.count + 1 < OUTGOING_MAX_EXTENTS &&
           !reducing_has_failed(s)) {
        uint32_t item = queues_peek(&r->queues, port);
        if (item == QUEUES_NONE || frame->body_length + next_item_length(s, r, item) > s->chunk)
            return;
        if (item < s->trees->count)
            (void)add_contribution(s, r, port, item, filling);
        else
            (void)add_result(s, r, port, item - s->trees->count, filling);
    }
}

/* Returns the next frame of this round, or NULL if nothing can leave now. */
static struct outgoing *next_frame_of_reducing_round(struct reducing *s, struct reducing_round *r,
                                                     unsigned port)
{
    struct reducing_filling filling;

    if (queues_peek(&r->queues, port) == QUEUES_NONE)
        return NULL;
    filling.frame = frame_buffer_new_frame(&s->buffer);
    filling.pieces = 0;
    if (filling.frame == NULL)
        return NULL;
    fill_reducing_frame(s, r, port, &filling);
    const struct peer_message message = {
        .kind = PEER_STREAMED_DATA,
        .streamed_data = {.exchange = s->base.set.handle,
                          .round = (uint32_t)(r->base.number & ENGINE_ROUND_MASK),
                          .has_call = s->base.set.call != NULL,
                          .call = engine_call(&s->base),
                          .n_pieces = filling.pieces,
                          .pieces = filling.piece}};
    if (filling.pieces > 0 && !s->options.unchecked && !reducing_has_failed(s))
        (void)reducing_add_digest(s, &message.streamed_data, filling.frame);
    return frame_buffer_ship(&s->buffer, port, filling.frame, &message, filling.pieces > 0);
}

struct outgoing *reducing_next(struct engine *engine, unsigned port)
{
    struct reducing *s = reducing_of(engine);
    struct reducing_round *r = reducing_next_round(s, s->base.rounds_finished);

    if (engine_has_lost(&s->base, port))
        return NULL;
    for (; r != NULL && !reducing_has_failed(s); r = reducing_next_round(s, r->base.number + 1)) {
        struct outgoing *frame = next_frame_of_reducing_round(s, r, port);
        if (frame == NULL)
            continue;
        s->base.counts.port[port].combined_messages++;
        reducing_finish_rounds(s);
        return frame;
    }
    return NULL;
}
