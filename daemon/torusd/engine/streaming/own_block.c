#include "daemon/torusd/engine/streaming/own_block.h"

#include "daemon/torusd/engine/streaming/pieces.h"

void streaming_requeue_starved(struct streaming *s, struct streaming_round *r)
{
    r->starved = false;
    for (uint32_t i = 0; i < s->passages->own; i++)
        if (r->flow[i].sent < r->flow[i].length)
            streaming_enqueue_and_wake(s, r, i);
}

/* Counts a piece of the own block that has been read to its end. The next piece of the block may have waited
 * for that. */
static void end_reading_own(struct streaming *s, struct streaming_round *r)
{
    struct streaming_round *after = streaming_find_round(s, r->base.number + 1);

    r->own.delivered = --r->unread == 0;
    if (after != NULL && after->starved)
        streaming_requeue_starved(s, after);
}

/* Allgather: reads up to `most` bytes of a piece of the own block, for all ports by which it leaves, and
 * for this node. The round holds the bytes until they have left by all ports. */
static void read_own_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                           uint32_t most)
{
    uint32_t first = index;

    while (streaming_shares_piece(s, first))
        first--;
    struct streaming_flow *flow = &r->flow[first];
    const struct block_piece piece = streaming_piece(s, r, first);
    if (most > flow->length - flow->arrived)
        most = flow->length - flow->arrived;
    if (most == 0 || !streaming_predecessor_read(s, r, first))
        return;
    while (most > 0) {
        struct extent bytes;
        if (!frame_buffer_read_own(&s->buffer, &piece, flow->arrived, streaming_mark(r, first),
                                   most, &bytes))
            break;
        frame_buffer_put(&s->buffer, &flow->hold, flow->arrived, &bytes);
        streaming_share_bytes(s, r, first, flow->arrived, &bytes);
        flow->arrived += bytes.length;
        most -= bytes.length;
        slab_unref(bytes.slab);
        if (r->starved)
            streaming_requeue_starved(s, r);
    }
    if (flow->arrived < flow->length)
        return;
    for (uint32_t i = first + 1;
         r->mark != NULL && i < s->passages->count && streaming_shares_piece(s, i); i++)
        r->mark[i].digest = r->mark[first].digest;
    end_reading_own(s, r);
}

uint32_t streaming_move_shared(struct streaming *s, struct streaming_round *r, uint32_t index,
                               uint32_t most, struct outgoing *frame)
{
    struct streaming_flow *flow = &r->flow[index];

    if (flow->arrived - flow->sent < most)
        read_own_piece(s, r, index, most - (flow->arrived - flow->sent));
    if (s->base.failure.code != ERROR_NONE)
        return 0; /* after a failure the hold may lack bytes that count as arrived */
    if (most > flow->arrived - flow->sent)
        most = flow->arrived - flow->sent;
    return most > 0 ? frame_buffer_load(&s->buffer, &flow->hold, flow->sent, NULL, most, frame) : 0;
}
