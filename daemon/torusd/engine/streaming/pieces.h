/* How a streaming engine's blocks are cut: where its pieces begin, and their digests. */
#pragma once

#include "daemon/torusd/engine/streaming/state.h"

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
