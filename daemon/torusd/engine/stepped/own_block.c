#include "daemon/torusd/engine/stepped/own_block.h"

/* In an allgather this node's block for itself is its block for all nodes: the block is read once, and held
 * until it has left by every port. */
static void deliver_shared_block(struct stepped *s)
{
    const struct cut_round *cut = &s->leaving;
    struct stepped_slot *slots = &s->slot[s->plan->slots];
    uint32_t me = s->plan->rank;
    uint64_t size = s->base.set.source->ops->size(s->base.set.source, me);
    uint64_t end = cut->begin + cut_whole(cut, size);

    for (uint32_t i = 0; s->own.at == cut->begin && i < s->base.set.segments; i++)
        stepped_open_slot(&slots[i], cut_length(cut, size, i));
    while (s->own.at < end) {
        uint32_t segment = (uint32_t)((s->own.at - cut->begin) / cut->stride);
        uint32_t offset = (uint32_t)(s->own.at - cut_begin(cut, segment));
        const struct block_piece piece = {me, me, cut_begin(cut, segment), slots[segment].length};
        struct extent bytes;
        if (!frame_buffer_read_own(&s->buffer, &piece, offset,
                                   stepped_mark(s, &slots[segment].mark), piece.length - offset,
                                   &bytes))
            return;
        if (slots[segment].sends > 0)
            frame_buffer_put(&s->buffer, &slots[segment].hold, offset, &bytes);
        s->own.at += bytes.length;
        slab_unref(bytes.slab);
    }
    s->own.delivered = s->base.failure.code == ERROR_NONE;
}

void stepped_deliver_own(struct stepped *s)
{
    if (s->base.set.gather)
        deliver_shared_block(s);
    else
        frame_buffer_deliver_own(&s->buffer, s->plan->rank, &s->leaving, &s->own);
}
