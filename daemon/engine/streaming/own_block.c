#include "daemon/engine/streaming/own_block.h"

#include "daemon/engine/streaming/pieces.h"

void streaming_feed(struct streaming *s, struct streaming_round *r)
{
    r->starved = false;
    for (uint32_t i = 0; i < s->passages->own; i++)
        if (r->flow[i].gone < r->flow[i].length)
            streaming_line_up(s, r, i);
}

/* Ends a piece of the own block that has been read to its end; the next piece of that block may have waited
 * for it. */
static void end_reading_own(struct streaming *s, struct streaming_round *r)
{
    struct streaming_round *after = streaming_find_round(s, r->base.number + 1);

    r->own.delivered = --r->unread == 0;
    if (after != NULL && after->starved)
        streaming_feed(s, after);
}

/* Allgather: reads up to `most` bytes of a piece of the own block, for all ports by which it leaves, and
 * for this node. The round holds the bytes until they have left by all ports. */
static void read_own_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                           uint32_t most)
{
    uint32_t first = index;

    while (streaming_joins(s, first))
        first--;
    struct streaming_flow *flow = &r->flow[first];
    const struct block_piece piece = streaming_piece(s, r, first);
    if (most > flow->length - flow->came)
        most = flow->length - flow->came;
    if (most == 0 || !streaming_predecessor_gone(s, r, first))
        return;
    while (most > 0) {
        struct extent bytes;
        if (!frame_buffer_read_own(&s->buffer, &piece, flow->came, streaming_mark(r, first), most,
                                   &bytes))
            break;
        frame_buffer_put(&s->buffer, &flow->hold, flow->came, &bytes);
        streaming_share_bytes(s, r, first, flow->came, &bytes);
        flow->came += bytes.length;
        most -= bytes.length;
        slab_unref(bytes.slab);
        if (r->starved)
            streaming_feed(s, r);
    }
    if (flow->came < flow->length)
        return;
    for (uint32_t i = first + 1; r->mark != NULL && i < s->passages->count && streaming_joins(s, i);
         i++)
        r->mark[i].digest = r->mark[first].digest;
    end_reading_own(s, r);
}

uint32_t streaming_move_shared(struct streaming *s, struct streaming_round *r, uint32_t index,
                               uint32_t most, struct outgoing *frame)
{
    struct streaming_flow *flow = &r->flow[index];

    if (flow->came - flow->gone < most)
        read_own_piece(s, r, index, most - (flow->came - flow->gone));
    if (s->base.failure.code != ERROR_NONE)
        return 0; /* then the hold may lack bytes that have arrived */
    if (most > flow->came - flow->gone)
        most = flow->came - flow->gone;
    return most > 0 ? frame_buffer_load(&s->buffer, &flow->hold, flow->gone, NULL, most, frame) : 0;
}
