#include "daemon/torusd/engine/reducing/combining.h"

#include <string.h>

/* Whether the tree's piece in the previous round has been combined: sources are read, and sinks written,
 * front to back. */
static bool is_predecessor_combined(const struct reducing *s, const struct reducing_round *r,
                                    uint32_t index)
{
    const struct reducing_round *before;

    if (r->base.number == s->base.rounds_finished)
        return true;
    before = reducing_find_round(s, r->base.number - 1);
    return before == NULL || before->piece[index].combined == before->piece[index].chunks;
}

/* Whether all parts of the piece's next chunk have arrived, except perhaps this node's own. */
static bool is_chunk_ready(const struct reducing *s, const struct reducing_round *r, uint32_t index)
{
    const struct reducing_piece *piece = &r->piece[index];

    return r->base.admitted && piece->missing == 0 && piece->combined < piece->chunks &&
           is_predecessor_combined(s, r, index);
}

/* Copies this node's part of the piece's next chunk. Returns 1 when it is complete; 0 if the source does
 * not have all of it yet; -1 if the engine has failed. */
static int read_own_part(struct reducing *s, struct reducing_piece *piece, uint32_t owner,
                         uint32_t length)
{
    struct source *source = s->base.set.source;
    struct error e;

    if (length > 0 && piece->own.slab == NULL &&
        slab_writer_take(&s->writer, router_pool(s->base.set.router), length, &piece->own) == NULL)
        return engine_no_memory(&s->base);
    while (piece->filled < length) {
        struct extent bytes;
        uint64_t offset = piece->begin + (uint64_t)piece->combined * s->chunk + piece->filled;
        int result = source->ops->read(source, owner, offset, length - piece->filled, &bytes, &e);
        if (result < 0)
            return engine_fail(&s->base, &e);
        if (result == 0)
            return 0;
        memcpy((uint8_t *)(uintptr_t)piece->own.data + piece->filled, bytes.data, bytes.length);
        piece->filled += bytes.length;
        slab_unref(bytes.slab);
    }
    return 1;
}

int reducing_combine(struct reducing *s, struct reducing_round *r, uint32_t index,
                     struct extent *out)
{
    const struct reduction_tree *tree = &s->trees->tree[index];
    struct reducing_piece *piece = &r->piece[index];
    uint32_t length = reducing_chunk_length(s, piece, piece->combined);
    int result = read_own_part(s, piece, tree->owner, length);

    if (result <= 0) {
        r->stalled = r->stalled || result == 0;
        return result;
    }
    *out = piece->own;
    piece->own = (struct extent){0};
    piece->filled = 0;
    for (uint32_t i = tree->first; i < tree->first + tree->children; i++) {
        struct extent part = chain_pop(&s->chunks, &r->branch[i].up);
        if (length > 0)
            reduction_combine(s->options.type, s->options.operation,
                              (uint8_t *)(uintptr_t)out->data, part.data, length / s->element);
        chunk_drop(&part);
        piece->missing += chain_is_empty(&r->branch[i].up);
    }
    piece->combined++;
    r->base.left--;
    return 1;
}

int reducing_deliver(struct reducing *s, struct reducing_round *r, uint32_t index, uint32_t chunk,
                     const struct extent *bytes)
{
    const struct reduction_tree *tree = &s->trees->tree[index];
    const struct reducing_piece *piece = &r->piece[index];
    struct sink *sink = s->base.set.sink;
    struct error e;

    if (chunk + 1 == piece->chunks && tree->segment == 0)
        r->base.delivered++;
    s->base.counts.bytes_delivered += bytes->length;
    if (bytes->length > 0 &&
        sink->ops->write(sink, tree->owner, piece->begin + (uint64_t)chunk * s->chunk, bytes, &e) !=
            0)
        return engine_fail(&s->base, &e);
    return 0;
}

void reducing_send_down(struct reducing *s, struct reducing_round *r, uint32_t index,
                        const struct extent *bytes)
{
    const struct reduction_trees *trees = s->trees;
    const struct reduction_tree *tree = &trees->tree[index];

    for (uint32_t i = tree->first; i < tree->first + tree->children; i++) {
        unsigned port = trees->child[i].port;
        if (chain_append(&s->chunks, &r->branch[i].down, bytes) != 0) {
            (void)engine_no_memory(&s->base);
            return;
        }
        if (queues_add(&r->queues, port, reducing_urgency_down(trees, tree), trees->count + i))
            engine_wake_port(&s->base, port);
    }
}

static void combine_at_owner(struct reducing *s, struct reducing_round *r, uint32_t index)
{
    struct reducing_piece *piece = &r->piece[index];

    while (is_chunk_ready(s, r, index) && !reducing_has_failed(s)) {
        struct extent result;
        if (reducing_combine(s, r, index, &result) <= 0)
            return;
        if (reducing_deliver(s, r, index, piece->combined - 1, &result) == 0 &&
            s->options.everywhere)
            reducing_send_down(s, r, index, &result);
        chunk_drop(&result);
    }
}

void reducing_combine_if_ready(struct reducing *s, struct reducing_round *r, uint32_t index)
{
    const struct reduction_trees *trees = s->trees;
    const struct reduction_tree *tree = &trees->tree[index];

    while (r != NULL && is_chunk_ready(s, r, index) && !reducing_has_failed(s)) {
        if (!reducing_is_owner(tree)) {
            if (queues_add(&r->queues, tree->parent, reducing_urgency_up(trees, tree), index))
                engine_wake_port(&s->base, tree->parent);
            return;
        }
        combine_at_owner(s, r, index);
        if (r->piece[index].combined < r->piece[index].chunks)
            return;
        /* the round that had to wait for this one */
        r = reducing_find_round(s, r->base.number + 1);
    }
}
