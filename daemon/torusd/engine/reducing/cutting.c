#include "daemon/torusd/engine/reducing/cutting.h"

#define FILL_MOST (60u * 1024u)
#define FILLS_A_CHANNEL 64u /* chunks per channel and round that keep all levels of trees busy */

uint32_t reducing_piece_length(const struct reducing *s, uint64_t begin,
                               const struct reduction_tree *tree, uint64_t *at)
{
    const struct engine_setup *set = &s->base.set;
    uint64_t size = set->source->ops->size(set->source, tree->owner);
    uint64_t whole = size <= begin ? 0 : size - begin;

    whole = whole < set->round_bytes ? whole : set->round_bytes;
    uint64_t elements = whole / s->element, segments = s->trees->segments;
    uint64_t stride = (elements + segments - 1) / segments * s->element;
    uint64_t before = stride * tree->segment;
    *at = begin + before;
    if (before >= whole)
        return 0;
    return (uint32_t)(whole - before < stride ? whole - before : stride);
}

uint32_t reducing_count_chunks(const struct reducing *s, const struct reduction_tree *tree,
                               uint32_t length)
{
    const struct engine_setup *set = &s->base.set;

    if (length == 0)
        return s->trees->single && tree->segment == 0 &&
               set->source->ops->size(set->source, tree->owner) == 0;
    return length / s->chunk + (length % s->chunk != 0);
}

uint32_t reducing_choose_chunk(const struct engine_setup *set, const struct reduction_trees *trees,
                               uint32_t element)
{
    const struct torus *t = engine_torus(set);
    unsigned links = torus_fewest_links(t);
    /* Whole elements. The chunks of all nodes must be alike, and those of the release before are multiples of 8 bytes. */
    const uint32_t unit = element > 8 ? element : 8;
    uint64_t most = set->round_bytes;

    if (!trees->single && links > 0)
        most = most * (t->nodes - 1) / links;
    else if (trees->segments > 1 &&
             links > 0) /* all trees have one owner: each of its links carries a part */
        most /= links;
    most /= FILLS_A_CHANNEL;
    most = most < REDUCTION_LEAST_CHUNK ? REDUCTION_LEAST_CHUNK
           : most > FILL_MOST           ? FILL_MOST
                                        : most;
    return (uint32_t)(most / unit * unit);
}
