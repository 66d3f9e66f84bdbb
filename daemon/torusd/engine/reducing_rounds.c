#include "daemon/torusd/engine/reducing_rounds.h"

#include <stdlib.h>

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

/* Returns how many chunks a piece of this length has. An empty piece has none, unless it is sent to say
 * that all nodes have called (a gate or barrier). */
static uint32_t reducing_count_chunks(const struct reducing *s, const struct reduction_tree *tree,
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

static void empty_reducing_round(struct reducing *s, struct reducing_round *r)
{
    for (uint32_t i = 0; i < s->trees->count; i++)
        chunk_drop(&r->piece[i].own);
    for (uint32_t i = 0; i < s->trees->edges; i++) {
        chain_clear(&s->chunks, &r->branch[i].up);
        chain_clear(&s->chunks, &r->branch[i].down);
    }
}

static void free_reducing_round(struct reducing_round *r)
{
    free(r->piece);
    free(r->branch);
    queues_free(&r->queues);
    *r = (struct reducing_round){0};
}

/* Allocates all memory of a round or none. */
static int allocate_reducing_round(struct reducing *s, struct reducing_round *r)
{
    const struct reduction_trees *trees = s->trees;

    r->piece = calloc((size_t)trees->count + 1, sizeof *r->piece);
    r->branch = calloc((size_t)trees->edges + 1, sizeof *r->branch);
    if (r->piece != NULL && r->branch != NULL &&
        queues_init(&r->queues, s->ports, 2 * trees->most_distance + 1,
                    trees->count + trees->edges) == 0)
        return 0;
    free_reducing_round(r);
    return -1;
}

static void begin_reducing_piece(struct reducing *s, struct reducing_round *r, uint32_t index)
{
    const struct reduction_tree *tree = &s->trees->tree[index];
    struct reducing_piece *piece = &r->piece[index];

    *piece = (struct reducing_piece){.missing = tree->children};
    piece->length = reducing_piece_length(s, r->begin, tree, &piece->begin);
    piece->chunks = reducing_count_chunks(s, tree, piece->length);
    r->base.left += piece->chunks;
    if (s->options.everywhere)
        r->base.left +=
            (uint64_t)piece->chunks * (tree->children + (reducing_is_owner(tree) ? 0u : 1u));
    for (uint32_t i = tree->first; i < tree->first + tree->children; i++)
        r->branch[i] = (struct reducing_branch){.up = chain_empty(), .down = chain_empty()};
}

struct reducing_round *reducing_open_round(struct reducing *s, uint64_t number)
{
    struct reducing_round *r = round_window_find(&s->window, number);

    if (r != NULL)
        return r;
    r = round_window_slot(&s->window, number);
    if (r->piece == NULL && allocate_reducing_round(s, r) != 0) {
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    r->base = (struct window_round){.number = number, .open = true};
    r->begin = engine_round(&s->base, number) * s->base.set.round_bytes;
    r->stalled = false;
    queues_clear(&r->queues);
    for (uint32_t i = 0; i < s->trees->count; i++)
        begin_reducing_piece(s, r, i);
    return r;
}

void reducing_finish_rounds(struct reducing *s)
{
    while (round_window_end(&s->window))
        ;
}

void reducing_free_rounds(struct reducing *s)
{
    for (uint32_t i = 0; i < s->base.set.window; i++) {
        struct reducing_round *r = round_window_slot(&s->window, i);
        if (r->base.open)
            empty_reducing_round(s, r);
        free_reducing_round(r);
    }
}
