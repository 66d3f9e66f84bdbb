#include "daemon/torusd/engine/reducing.h"

#include <stdlib.h>

#include "daemon/torusd/engine/reducing/combining.h"
#include "daemon/torusd/engine/reducing/cutting.h"
#include "daemon/torusd/engine/reducing/progress.h"
#include "daemon/torusd/engine/reducing/receiving.h"
#include "daemon/torusd/engine/reducing/rounds.h"
#include "daemon/torusd/engine/reducing/sending.h"
#include "proto/text.h"

static void reducing_admit(struct engine *engine, uint64_t number)
{
    struct reducing *s = reducing_of(engine);
    struct reducing_round *r = reducing_open_round(s, number);

    if (r == NULL)
        return;
    r->base.admitted = true;
    for (uint32_t i = 0; i < s->trees->count; i++)
        reducing_combine_if_ready(s, r, i);
    reducing_finish_rounds(s);
}

static void reducing_wake(struct engine *engine)
{
    struct reducing *s = reducing_of(engine);
    struct reducing_round *r = reducing_next_round(s, engine->rounds_finished);

    for (; r != NULL; r = reducing_next_round(s, r->base.number + 1)) {
        if (!r->stalled)
            continue;
        r->stalled = false;
        for (uint32_t i = 0; i < s->trees->count; i++)
            reducing_combine_if_ready(s, r, i);
    }
    reducing_finish_rounds(s);
}

static int reducing_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                          struct error *e)
{
    (void)engine, (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "a clear, but a reduction does not run in steps");
}

static void reducing_free(struct engine *engine)
{
    struct reducing *s = reducing_of(engine);

    reducing_free_rounds(s);
    frame_buffer_close(&s->buffer);
    slab_writer_close(&s->writer);
    chunks_free(&s->chunks);
    round_window_free(&s->window);
    free(s);
}

static const struct engine_ops reducing_ops = {
    .free = reducing_free,
    .admit = reducing_admit,
    .frame = reducing_frame,
    .clear = reducing_clear,
    .next = reducing_next,
    .wake = reducing_wake,
    .describe = reducing_describe,
};

static int check_reduction(const struct engine_setup *setup, const struct reduction_trees *trees,
                           const struct reducing_options *options, struct error *e)
{
    uint32_t element = reduction_size(options->type);
    bool empty = true;

    if (!reduction_allowed(options->type, options->operation))
        return error_set(e, ERROR_USAGE, "operator %u is not defined for type %u",
                         options->operation, options->type);
    for (uint32_t i = 0; i < trees->count; i++) {
        uint64_t size = setup->source->ops->size(setup->source, trees->tree[i].owner);
        if (size % element != 0)
            return error_set(
                e, ERROR_USAGE,
                "the block for node %u has %llu %s, which is not a multiple of the element's %u",
                trees->tree[i].owner, (unsigned long long)size, text_plural(size, "byte", "bytes"),
                element);
        empty = empty && size == 0;
    }
    if (setup->round_bytes % element != 0 || (setup->round_bytes == 0 && !empty))
        return error_set(
            e, ERROR_USAGE, "rounds have %u %s, which is not a multiple of the element's %u",
            setup->round_bytes, text_plural(setup->round_bytes, "byte", "bytes"), element);
    return 0;
}

struct engine *reducing_new(const struct engine_setup *setup, const struct reduction_trees *trees,
                            const struct reducing_options *options, struct error *e)
{
    if (check_reduction(setup, trees, options, e) != 0)
        return NULL;
    struct reducing *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->base.ops = &reducing_ops;
        s->base.set = *setup;
        s->options = *options;
        s->trees = trees;
        s->ports = torus_ports(engine_torus(setup));
        s->element = reduction_size(options->type);
        s->chunk = reducing_choose_chunk(setup, trees, s->element);
        chunks_init(&s->chunks);
        frame_buffer_init(&s->buffer, &s->base, s->chunk);
        if (round_window_init(&s->window, &s->base, sizeof(struct reducing_round)) == 0)
            return &s->base;
        free(s);
    }
    (void)error_set(e, ERROR_MEMORY, "out of memory for a reduction");
    return NULL;
}

uint64_t reducing_memory(const struct engine_setup *setup, const struct reduction_trees *trees,
                         const struct reducing_options *options)
{
    const struct reducing s = {
        .base = {.set = *setup}, .trees = trees, .element = reduction_size(options->type)};
    uint64_t bytes = 0, chunks = 0, chunk = reducing_choose_chunk(setup, trees, s.element);

    for (uint32_t i = 0; i < trees->count; i++) {
        const struct reduction_tree *tree = &trees->tree[i];
        uint64_t at,
            length = reducing_piece_length(&s, 0, tree, &at); /* later rounds are not longer */
        /* The chunks of each child and this node's part of one chunk; then the results, which all children
         * share. */
        uint64_t kept = tree->children + (options->everywhere && tree->children > 0 ? 1u : 0u);
        bytes += kept * length + (length < chunk ? length : chunk);
        chunks += (kept + tree->children) * (length / chunk + 1);
    }
    bytes += trees->count * sizeof(struct reducing_piece) +
             trees->edges * sizeof(struct reducing_branch);
    bytes += chunks * (sizeof(struct chunk) + offsetof(struct slab, data));
    bytes += torus_ports(engine_torus(setup)) * (2 * trees->most_distance + 1) * 8;
    bytes += ((uint64_t)trees->count + trees->edges) * 4;
    return sizeof(struct reducing) + SLAB_SIZE +
           setup->window * (sizeof(struct reducing_round) + bytes);
}
