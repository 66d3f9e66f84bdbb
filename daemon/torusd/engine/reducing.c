#include "daemon/torusd/engine/reducing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/digest.h"
#include "daemon/torusd/engine/reducing_rounds.h"
#include "proto/text.h"

/* Whether the tree's piece in the previous round has been combined: sources are read, and sinks written,
 * front to back. */
static bool is_predecessor_combined(const struct reducing *s, const struct reducing_round *r,
                                    uint32_t index)
{
    const struct reducing_round *before;

    if (r->base.number == s->base.rounds_finished)
        return true;
    before = round_window_find(&s->window, r->base.number - 1);
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

/* Combines the piece's next chunk, in the order of reducing.h. Returns 1 with *out, whose reference the
 * caller drops; 0 if the source is not ready; -1: the engine has failed. */
static int reducing_combine(struct reducing *s, struct reducing_round *r, uint32_t index,
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

/* Writes a chunk of the result to the sink. Returns 0, or -1: the engine has failed. */
static int reducing_deliver(struct reducing *s, struct reducing_round *r, uint32_t index,
                            uint32_t chunk, const struct extent *bytes)
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

/* Sends a chunk of a result for all nodes down the tree. */
static void reducing_send_down(struct reducing *s, struct reducing_round *r, uint32_t index,
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
        if (result.length > 0)
            reduction_finish(s->options.type, s->options.operation,
                             (uint8_t *)(uintptr_t)result.data, result.length / s->element,
                             s->options.members);
        if (reducing_deliver(s, r, index, piece->combined - 1, &result) == 0 &&
            s->options.everywhere)
            reducing_send_down(s, r, index, &result);
        chunk_drop(&result);
    }
}

/* To be called when a chunk of a tree has arrived, or may leave. If the tree's next chunk can be combined,
 * the owner combines it at once; other nodes combine it when the port to the parent asks for it. Does nothing
 * if `r` is NULL. */
static void reducing_combine_if_ready(struct reducing *s, struct reducing_round *r, uint32_t index)
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
        r = round_window_find(&s->window, r->base.number + 1);
    }
}

/* The digest covers where a piece belongs, so that one piece cannot pass for another. */
static uint64_t frame_digest_seed(uint32_t exchange, uint32_t round, const uint32_t *piece,
                                  size_t pieces)
{
    uint64_t seed = (uint64_t)exchange << 32 | round;

    for (size_t i = 0; i < pieces; i++)
        seed = (seed ^ piece[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return seed;
}

static int fail_damaged_frame(struct reducing *s, unsigned port)
{
    const struct router *router = s->base.set.router;
    unsigned here = engine_port(&s->base, port);
    char name[TORUS_PORT_NAME_SIZE];
    struct error e;

    (void)error_set(&e, ERROR_DAMAGED,
                    "node %u received a damaged frame from node %u on port %s: its digest differs "
                    "from the digest of the sent bytes",
                    router_rank(router),
                    torus_neighbour(router_torus(router), router_rank(router), here),
                    torus_port_name(router_torus(router), router_rank(router), here, name));
    (void)error_blame_link(&e, router_rank(router), here);
    return engine_fail(&s->base, &e);
}

/* Appends the digest of the frame's bytes and of its head's fields. Returns 0, or -1: the engine has
 * failed. */
static int reducing_add_digest(struct reducing *s, const struct peer_streamed_data *data,
                               struct outgoing *frame)
{
    uint8_t digest[DIGEST_SIZE];
    uint64_t seed = frame_digest_seed(data->exchange, data->round, data->pieces, data->n_pieces);

    digest_write(digest, digest_extents(&frame->body, frame->body_length, seed));
    if (extents_copy(&frame->body, &s->writer, router_pool(s->base.set.router), digest,
                     sizeof digest) != 0)
        return engine_no_memory(&s->base);
    frame->body_length += DIGEST_SIZE;
    return 0;
}

/* Checks the digest at the end of a frame, and subtracts its size from *length. Returns 1 if the rest can
 * be used; 0 if the frame is damaged, which fails the engine; -1 with *e if the frame has no digest. */
static int reducing_check_digest(struct reducing *s, unsigned port,
                                 const struct peer_streamed_data *data, const struct extents *body,
                                 uint32_t *length, struct error *e)
{
    struct extent_cursor cursor = {0};
    struct extent run;
    uint8_t sent[DIGEST_SIZE];

    if (s->options.unchecked)
        return 1;
    if (*length < DIGEST_SIZE)
        return error_set(e, ERROR_PROTOCOL, "a frame without a digest");
    *length -= DIGEST_SIZE;
    uint64_t seed = frame_digest_seed(data->exchange, data->round, data->pieces, data->n_pieces);
    uint64_t digest = digest_extents(body, *length, seed);
    for (uint32_t skip = *length; skip > 0;)
        skip -= extents_take(body, &cursor, skip, &run);
    for (uint32_t at = 0; at < DIGEST_SIZE; at += run.length) {
        (void)extents_take(body, &cursor, DIGEST_SIZE - at, &run);
        memcpy(sent + at, run.data, run.length);
    }
    if (digest_read(sent) == digest)
        return 1;
    (void)fail_damaged_frame(s, port);
    return 0;
}

/* The bytes of a frame that are not processed yet. */
struct reducing_arrival {
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t left;
};

/* Takes the next chunk of a piece; `number` chunks have arrived before. */
static int take_arriving_chunk(struct reducing *s, const struct reducing_piece *piece,
                               uint32_t number, struct reducing_arrival *in, struct extent *chunk,
                               struct error *e)
{
    uint32_t length = reducing_chunk_length(s, piece, number);

    if (length > in->left)
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s less than the pieces that it names",
                         length - in->left, text_plural(length - in->left, "byte", "bytes"));
    in->left -= length;
    if (chunk_gather(in->body, &in->cursor, length, chunk) != 0)
        (void)engine_no_memory(&s->base);
    return 0;
}

/* Takes a chunk from a child. */
static int take_contribution(struct reducing *s, struct reducing_round *r, uint32_t child,
                             struct reducing_arrival *in, struct error *e)
{
    uint32_t index = s->trees->child[child].tree;
    struct reducing_branch *branch = &r->branch[child];
    struct reducing_piece *piece = &r->piece[index];
    struct extent chunk;

    if (branch->arrived == piece->chunks)
        return error_set(e, ERROR_PROTOCOL, "piece %u arrived twice", s->trees->child[child].place);
    if (take_arriving_chunk(s, piece, branch->arrived, in, &chunk, e) != 0)
        return -1;
    branch->arrived++;
    piece->missing -= chain_is_empty(&branch->up);
    if (!reducing_has_failed(s) && chain_append(&s->chunks, &branch->up, &chunk) != 0)
        (void)engine_no_memory(&s->base);
    reducing_combine_if_ready(s, r, index);
    chunk_drop(&chunk);
    return 0;
}

/* Takes a chunk of the result from the parent. */
static int take_result(struct reducing *s, struct reducing_round *r, uint32_t index,
                       struct reducing_arrival *in, struct error *e)
{
    struct reducing_piece *piece = &r->piece[index];
    struct extent chunk;

    if (piece->returned == piece->combined)
        return error_set(e, ERROR_PROTOCOL,
                         "a result of piece %u, but this node has not contributed to it",
                         s->trees->tree[index].place);
    if (take_arriving_chunk(s, piece, piece->returned, in, &chunk, e) != 0)
        return -1;
    piece->returned++;
    r->base.left--;
    if (!reducing_has_failed(s) && reducing_deliver(s, r, index, piece->returned - 1, &chunk) == 0)
        reducing_send_down(s, r, index, &chunk);
    chunk_drop(&chunk);
    return 0;
}

static int take_named_piece(struct reducing *s, struct reducing_round *r, unsigned port,
                            uint32_t place, struct reducing_arrival *in, struct error *e)
{
    const struct reduction_trees *trees = s->trees;
    uint32_t up = trees->arrivals[port], down = s->options.everywhere ? trees->departures[port] : 0;

    if (place < up)
        return take_contribution(s, r, trees->arrival[port][place], in, e);
    if (place - up < down)
        return take_result(s, r, trees->departure[port][place - up], in, e);
    return error_set(e, ERROR_PROTOCOL, "piece %u out of range: the channel has %u pieces", place,
                     up + down);
}

static int check_reducing_head(const struct reducing *s, const struct peer_message *message,
                               uint64_t *number, struct error *e)
{
    if (message->kind != PEER_STREAMED_DATA)
        return error_set(e, ERROR_PROTOCOL,
                         "data of a step, but a reduction does not run in steps");
    const struct peer_streamed_data *data = &message->streamed_data;
    if (round_window_number(&s->window, data->round, number, e) != 0)
        return -1;
    if (data->n_pieces == 0)
        return error_set(e, ERROR_PROTOCOL, "a frame without pieces");
    if (data->n_sizes > 0)
        return error_set(e, ERROR_PROTOCOL, "%zu %s for pieces whose sizes are known",
                         data->n_sizes, text_plural(data->n_sizes, "size", "sizes"));
    return 0;
}

/* engine_ops.frame */
static int reducing_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                          const struct extents *body, uint32_t body_length, struct error *e)
{
    struct reducing *s = reducing_of(engine);
    struct reducing_arrival in = {.body = body, .left = body_length};
    uint64_t number = 0;

    if (check_reducing_head(s, message, &number, e) != 0)
        return -1;
    if (reducing_has_failed(s))
        return 0;
    const struct peer_streamed_data *data = &message->streamed_data;
    int result = reducing_check_digest(s, port, data, body, &in.left, e);
    if (result <= 0)
        return result;
    struct reducing_round *r = reducing_open_round(s, number);
    if (r == NULL)
        return 0;
    s->base.counts.port[port].rx_bytes += body_length;
    for (size_t i = 0; i < data->n_pieces && !reducing_has_failed(s); i++)
        if (take_named_piece(s, r, port, data->pieces[i], &in, e) != 0)
            return -1;
    if (in.left > 0 && !reducing_has_failed(s))
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s more than the pieces that it names",
                         in.left, text_plural(in.left, "byte", "bytes"));
    reducing_finish_rounds(s);
    return 0;
}

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
        reducing_combine_if_ready(s, round_window_find(&s->window, r->base.number + 1), index);
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
                          .call = engine_call(&s->base, port),
                          .n_pieces = filling.pieces,
                          .pieces = filling.piece}};
    if (filling.pieces > 0 && !s->options.unchecked && !reducing_has_failed(s))
        (void)reducing_add_digest(s, &message.streamed_data, filling.frame);
    return frame_buffer_ship(&s->buffer, port, filling.frame, &message, filling.pieces > 0);
}

/* engine_ops.next */
static struct outgoing *reducing_next(struct engine *engine, unsigned port)
{
    struct reducing *s = reducing_of(engine);
    struct reducing_round *r = round_window_next(&s->window, s->base.rounds_finished);

    if (engine_has_lost(&s->base, port))
        return NULL;
    for (; r != NULL && !reducing_has_failed(s);
         r = round_window_next(&s->window, r->base.number + 1)) {
        struct outgoing *frame = next_frame_of_reducing_round(s, r, port);
        if (frame == NULL)
            continue;
        s->base.counts.port[port].combined_messages++;
        reducing_finish_rounds(s);
        return frame;
    }
    return NULL;
}

#define NONE UINT32_MAX

static void describe_waiting(const struct reducing *s, const struct reducing_round *r, char *text,
                             size_t size)
{
    const struct reduction_trees *trees = s->trees;
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t up = 0, down = 0, first_up = NONE, first_down = NONE;

    for (uint32_t i = trees->edges; i-- > 0;) {
        if (r->branch[i].arrived < r->piece[trees->child[i].tree].chunks) {
            first_up = i;
            up++;
        }
    }
    for (uint32_t i = trees->count; s->options.everywhere && i-- > 0;) {
        if (!reducing_is_owner(&trees->tree[i]) && r->piece[i].returned < r->piece[i].chunks) {
            first_down = i;
            down++;
        }
    }
    if (first_up != NONE)
        (void)snprintf(text, size,
                       "waiting for %u %s, the first one for the block of node %u on port %s", up,
                       text_plural(up, "contribution", "contributions"),
                       trees->tree[trees->child[first_up].tree].owner,
                       engine_port_name(&s->base, trees->child[first_up].port, name));
    else if (first_down != NONE)
        (void)snprintf(text, size, "waiting for %u %s, the first one from node %u on port %s", down,
                       text_plural(down, "result", "results"), trees->tree[first_down].owner,
                       engine_port_name(&s->base, trees->tree[first_down].parent, name));
    else
        (void)snprintf(text, size, "still sending %llu %s", (unsigned long long)r->base.left,
                       text_plural(r->base.left, "chunk", "chunks"));
}

/* engine_ops.describe */
static void reducing_describe(const struct engine *engine, char *text, size_t size)
{
    const struct reducing *s = (const struct reducing *)engine;
    const struct reducing_round *r = round_window_find(&s->window, engine->rounds_finished);

    if (r != NULL && r->base.left > 0)
        describe_waiting(s, r, text, size);
    else
        (void)snprintf(text, size, "%s",
                       engine->set.sink->ops->pending(engine->set.sink) > 0
                           ? "writing received data"
                           : "all sent and received");
}

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
    struct reducing_round *r = round_window_next(&s->window, engine->rounds_finished);

    for (; r != NULL; r = round_window_next(&s->window, r->base.number + 1)) {
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
