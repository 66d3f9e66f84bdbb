#include "daemon/engine/reducing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/chunks.h"
#include "daemon/engine/digest.h"
#include "daemon/engine/frame_buffer.h"
#include "daemon/engine/queues.h"
#include "daemon/engine/round_window.h"
#include "proto/text.h"

#define NONE UINT32_MAX
#define PIECES_A_FRAME 448u /* bounds the head; the receiver unpacks it without allocating */
#define FILL_MOST (60u * 1024u)
#define FILLS_A_CHANNEL 64u /* so many chunks a channel and round keep all levels of trees busy */

/* One tree's piece in a round. Its chunks are numbered from 0, and handled in that order. */
struct piece {
    uint64_t begin; /* in the block */
    uint32_t length, chunks;
    uint32_t gone;     /* chunks that have been combined here, and passed on or delivered */
    uint32_t returned; /* chunks of the result that have come from the parent */
    uint32_t missing;  /* children of which no chunk waits */
    struct extent own; /* our part of the next chunk, as far as the source has had it */
    uint32_t filled;
};

/* One child of a tree in a round. */
struct branch {
    uint32_t came;      /* chunks */
    struct chain up;    /* contributions that wait for those of others */
    struct chain down;  /* results that wait to leave */
    uint32_t delivered; /* results that have left */
};

struct round {
    struct window_round base; /* left: chunks to combine, to take back and to send down */
    uint64_t begin;
    bool stalled;          /* the source had nothing for one of the pieces */
    struct piece *piece;   /* by tree */
    struct branch *branch; /* by child */
    struct queues queues;  /* items: trees, whose next chunk can go up; then children, down */
};

struct reducing {
    struct engine base;
    struct reducing_options options;
    const struct reduction_trees *trees;
    struct cargo cargo; /* for its frames */
    struct slab_writer writer;
    unsigned ports;
    uint32_t element; /* bytes */
    uint32_t chunk;   /* bytes of a chunk but a piece's last, and what a frame is filled up to */
    struct chunks chunks;
    struct round_window window;
};

static struct reducing *of(struct engine *engine)
{
    return (struct reducing *)engine;
}

static bool has_failed(const struct reducing *s)
{
    return s->base.failure.code != ERROR_NONE;
}

/* The round, if it is under way. */
static struct round *find_round(const struct reducing *s, uint64_t number)
{
    return round_window_find(&s->window, number);
}

/* The oldest round under way from this number on. */
static struct round *next_round(const struct reducing *s, uint64_t number)
{
    return round_window_next(&s->window, number);
}

static bool is_owner(const struct reduction_tree *tree)
{
    return tree->parent == REDUCTION_NO_PORT;
}

/* --- how blocks are cut --- */

static uint32_t piece_length(const struct reducing *s, uint64_t begin,
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

/* Nothing is sent of an empty piece, unless all that is to be said is that everybody has come. */
static uint32_t count_chunks(const struct reducing *s, const struct reduction_tree *tree,
                             uint32_t length)
{
    const struct engine_setup *set = &s->base.set;

    if (length == 0)
        return s->trees->single && tree->segment == 0 &&
               set->source->ops->size(set->source, tree->owner) == 0;
    return length / s->chunk + (length % s->chunk != 0);
}

static uint32_t chunk_length(const struct reducing *s, const struct piece *piece, uint32_t chunk)
{
    uint32_t before = chunk * s->chunk;

    return piece->length - before < s->chunk ? piece->length - before : s->chunk;
}

/* The same at all nodes: small beside what a channel carries in a round, so that the levels of a
 * tree overlap, and else as much as a frame may have. */
static uint32_t choose_chunk(const struct engine_setup *set, const struct reduction_trees *trees)
{
    const struct torus *t = engine_torus(set);
    unsigned links = torus_fewest_links(t);
    uint64_t most = set->round_bytes;

    if (!trees->single && links > 0)
        most = most * (t->nodes - 1) / links;
    else if (trees->segments > 1 && links > 0) /* of one owner: a part on each link */
        most /= links;
    most /= FILLS_A_CHANNEL;
    most = most < REDUCTION_LEAST_CHUNK ? REDUCTION_LEAST_CHUNK
           : most > FILL_MOST           ? FILL_MOST
                                        : most;
    return (uint32_t)(most / 8 * 8); /* of whole elements of any type */
}

/* --- rounds --- */

static void empty_round(struct reducing *s, struct round *r)
{
    for (uint32_t i = 0; i < s->trees->count; i++)
        chunk_drop(&r->piece[i].own);
    for (uint32_t i = 0; i < s->trees->edges; i++) {
        chain_clear(&s->chunks, &r->branch[i].up);
        chain_clear(&s->chunks, &r->branch[i].down);
    }
}

static void free_round(struct round *r)
{
    free(r->piece);
    free(r->branch);
    queues_free(&r->queues);
    *r = (struct round){0};
}

/* All of it or nothing. */
static int allocate_round(struct reducing *s, struct round *r)
{
    const struct reduction_trees *trees = s->trees;

    r->piece = calloc((size_t)trees->count + 1, sizeof *r->piece);
    r->branch = calloc((size_t)trees->edges + 1, sizeof *r->branch);
    if (r->piece != NULL && r->branch != NULL &&
        queues_init(&r->queues, s->ports, 2 * trees->most_distance + 1,
                    trees->count + trees->edges) == 0)
        return 0;
    free_round(r);
    return -1;
}

static void begin_piece(struct reducing *s, struct round *r, uint32_t index)
{
    const struct reduction_tree *tree = &s->trees->tree[index];
    struct piece *piece = &r->piece[index];

    *piece = (struct piece){.missing = tree->children};
    piece->length = piece_length(s, r->begin, tree, &piece->begin);
    piece->chunks = count_chunks(s, tree, piece->length);
    r->base.left += piece->chunks;
    if (s->options.everywhere)
        r->base.left += (uint64_t)piece->chunks * (tree->children + (is_owner(tree) ? 0u : 1u));
    for (uint32_t i = tree->first; i < tree->first + tree->children; i++)
        r->branch[i] = (struct branch){.up = chain_empty(), .down = chain_empty()};
}

/* The round's slot, made ready for it if that is its first use; NULL without memory. */
static struct round *open_round(struct reducing *s, uint64_t number)
{
    struct round *r = find_round(s, number);

    if (r != NULL)
        return r;
    r = round_window_slot(&s->window, number);
    if (r->piece == NULL && allocate_round(s, r) != 0) {
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    r->base = (struct window_round){.number = number, .open = true};
    r->begin = engine_round(&s->base, number) * s->base.set.round_bytes;
    r->stalled = false;
    queues_clear(&r->queues);
    for (uint32_t i = 0; i < s->trees->count; i++)
        begin_piece(s, r, i);
    return r;
}

/* Ends the rounds that are over, the oldest first. */
static void finish_rounds(struct reducing *s)
{
    while (round_window_end(&s->window))
        ;
}

/* --- combining --- */

/* A source is read, and a sink written, front to back. */
static bool predecessor_gone(const struct reducing *s, const struct round *r, uint32_t index)
{
    const struct round *before;

    if (r->base.number == s->base.rounds_finished)
        return true;
    before = find_round(s, r->base.number - 1);
    return before == NULL || before->piece[index].gone == before->piece[index].chunks;
}

/* Whether all parts of the piece's next chunk are here, but perhaps for our own. */
static bool is_ready(const struct reducing *s, const struct round *r, uint32_t index)
{
    const struct piece *piece = &r->piece[index];

    return r->base.admitted && piece->missing == 0 && piece->gone < piece->chunks &&
           predecessor_gone(s, r, index);
}

/* Our own part of the piece's next chunk, copied. Returns 1 when it is complete; 0 if the source
 * has not all of it yet; -1. */
static int read_own(struct reducing *s, struct piece *piece, uint32_t owner, uint32_t length)
{
    struct source *source = s->base.set.source;
    struct error e;

    if (length > 0 && piece->own.slab == NULL &&
        slab_writer_take(&s->writer, router_pool(s->base.set.router), length, &piece->own) == NULL)
        return engine_no_memory(&s->base);
    while (piece->filled < length) {
        struct extent bytes;
        uint64_t offset = piece->begin + (uint64_t)piece->gone * s->chunk + piece->filled;
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

/* Combines the piece's next chunk, in the order that reducing.h says. Returns 1 with *out, whose
 * reference is the caller's; 0 if the source is not ready; -1. */
static int combine(struct reducing *s, struct round *r, uint32_t index, struct extent *out)
{
    const struct reduction_tree *tree = &s->trees->tree[index];
    struct piece *piece = &r->piece[index];
    uint32_t length = chunk_length(s, piece, piece->gone);
    int result = read_own(s, piece, tree->owner, length);

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
    piece->gone++;
    r->base.left--;
    return 1;
}

static int deliver(struct reducing *s, struct round *r, uint32_t index, uint32_t chunk,
                   const struct extent *bytes)
{
    const struct reduction_tree *tree = &s->trees->tree[index];
    const struct piece *piece = &r->piece[index];
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

/* How urgent what goes up a tree is, and what comes down: whatever has further to go. */
static uint32_t urgency_up(const struct reduction_trees *trees, const struct reduction_tree *tree)
{
    return trees->most_distance + tree->distance;
}

static uint32_t urgency_down(const struct reduction_trees *trees, const struct reduction_tree *tree)
{
    return trees->most_distance - tree->distance;
}

/* A chunk of the result, which all are to have: to the sink, and down the tree. */
static void send_down(struct reducing *s, struct round *r, uint32_t index,
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
        if (queues_add(&r->queues, port, urgency_down(trees, tree), trees->count + i))
            engine_wake_port(&s->base, port);
    }
}

static void combine_here(struct reducing *s, struct round *r, uint32_t index)
{
    struct piece *piece = &r->piece[index];

    while (is_ready(s, r, index) && !has_failed(s)) {
        struct extent result;
        if (combine(s, r, index, &result) <= 0)
            return;
        if (deliver(s, r, index, piece->gone - 1, &result) == 0 && s->options.everywhere)
            send_down(s, r, index, &result);
        chunk_drop(&result);
    }
}

/* Something of a tree has come, or may leave: if its next chunk can be combined, that is done now,
 * at the owner, or when the port to the parent asks for it. */
static void consider(struct reducing *s, struct round *r, uint32_t index)
{
    const struct reduction_trees *trees = s->trees;
    const struct reduction_tree *tree = &trees->tree[index];

    while (r != NULL && is_ready(s, r, index) && !has_failed(s)) {
        if (!is_owner(tree)) {
            if (queues_add(&r->queues, tree->parent, urgency_up(trees, tree), index))
                engine_wake_port(&s->base, tree->parent);
            return;
        }
        combine_here(s, r, index);
        if (r->piece[index].gone < r->piece[index].chunks)
            return;
        r = find_round(s, r->base.number + 1); /* which had to wait for this one */
    }
}

static void reducing_admit(struct engine *engine, uint64_t number)
{
    struct reducing *s = of(engine);
    struct round *r = open_round(s, number);

    if (r == NULL)
        return;
    r->base.admitted = true;
    for (uint32_t i = 0; i < s->trees->count; i++)
        consider(s, r, i);
    finish_rounds(s);
}

/* --- coming in --- */

/* So that a piece cannot pass for another one. */
static uint64_t digest_seed(uint32_t exchange, uint32_t round, const uint32_t *piece, size_t pieces)
{
    uint64_t seed = (uint64_t)exchange << 32 | round;

    for (size_t i = 0; i < pieces; i++)
        seed = (seed ^ piece[i]) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    return seed;
}

static int fail_damaged(struct reducing *s, unsigned port)
{
    const struct router *router = s->base.set.router;
    unsigned here = engine_port(&s->base, port);
    char name[TORUS_PORT_NAME_SIZE];
    struct error e;

    (void)error_set(
        &e, ERROR_DAMAGED,
        "what node %u got from node %u on port %s was damaged on its way: its digest is "
        "not that of what was sent",
        router_rank(router), torus_neighbour(router_torus(router), router_rank(router), here),
        torus_port_name(here, name));
    return engine_fail(&s->base, &e);
}

/* Checks the digest at the end of a frame, and takes it off *length. Returns 1 if the rest can be
 * used; 0 if it is damaged, and the engine has failed; -1 with *e if there is no digest. */
static int check_digest(struct reducing *s, unsigned port, const Peer__StreamedData *data,
                        const struct extents *body, uint32_t *length, struct error *e)
{
    struct extent_cursor cursor = {0};
    struct extent run;
    uint8_t sent[DIGEST_SIZE];

    if (s->options.unchecked)
        return 1;
    if (*length < DIGEST_SIZE)
        return error_set(e, ERROR_PROTOCOL, "a frame without its digest");
    *length -= DIGEST_SIZE;
    uint64_t seed = digest_seed(data->exchange, data->round, data->pieces, data->n_pieces);
    uint64_t digest = digest_extents(body, *length, seed);
    for (uint32_t skip = *length; skip > 0;)
        skip -= extents_take(body, &cursor, skip, &run);
    for (uint32_t at = 0; at < DIGEST_SIZE; at += run.length) {
        (void)extents_take(body, &cursor, DIGEST_SIZE - at, &run);
        memcpy(sent + at, run.data, run.length);
    }
    if (digest_read(sent) == digest)
        return 1;
    (void)fail_damaged(s, port);
    return 0;
}

/* A frame's bytes that have not been taken. */
struct coming {
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t left;
};

/* The next chunk of a piece, of which `number` have come before. */
static int take_chunk(struct reducing *s, const struct piece *piece, uint32_t number,
                      struct coming *in, struct extent *chunk, struct error *e)
{
    uint32_t length = chunk_length(s, piece, number);

    if (length > in->left)
        return error_set(e, ERROR_PROTOCOL, "%u %s less than the frame's pieces have",
                         length - in->left, text_plural(length - in->left, "byte", "bytes"));
    in->left -= length;
    if (chunk_gather(in->body, &in->cursor, length, chunk) != 0)
        (void)engine_no_memory(&s->base);
    return 0;
}

/* From a child. */
static int take_contribution(struct reducing *s, struct round *r, uint32_t child, struct coming *in,
                             struct error *e)
{
    uint32_t index = s->trees->child[child].tree;
    struct branch *branch = &r->branch[child];
    struct piece *piece = &r->piece[index];
    struct extent chunk;

    if (branch->came == piece->chunks)
        return error_set(e, ERROR_PROTOCOL, "piece %u has arrived already",
                         s->trees->child[child].place);
    if (take_chunk(s, piece, branch->came, in, &chunk, e) != 0)
        return -1;
    branch->came++;
    piece->missing -= chain_is_empty(&branch->up);
    if (!has_failed(s) && chain_append(&s->chunks, &branch->up, &chunk) != 0)
        (void)engine_no_memory(&s->base);
    consider(s, r, index);
    chunk_drop(&chunk);
    return 0;
}

/* From the parent. */
static int take_result(struct reducing *s, struct round *r, uint32_t index, struct coming *in,
                       struct error *e)
{
    struct piece *piece = &r->piece[index];
    struct extent chunk;

    if (piece->returned == piece->gone)
        return error_set(e, ERROR_PROTOCOL,
                         "a result of piece %u, to which this node has not contributed",
                         s->trees->tree[index].place);
    if (take_chunk(s, piece, piece->returned, in, &chunk, e) != 0)
        return -1;
    piece->returned++;
    r->base.left--;
    if (!has_failed(s) && deliver(s, r, index, piece->returned - 1, &chunk) == 0)
        send_down(s, r, index, &chunk);
    chunk_drop(&chunk);
    return 0;
}

static int take_piece(struct reducing *s, struct round *r, unsigned port, uint32_t place,
                      struct coming *in, struct error *e)
{
    const struct reduction_trees *trees = s->trees;
    uint32_t up = trees->arrivals[port], down = s->options.everywhere ? trees->departures[port] : 0;

    if (place < up)
        return take_contribution(s, r, trees->arrival[port][place], in, e);
    if (place - up < down)
        return take_result(s, r, trees->departure[port][place - up], in, e);
    return error_set(e, ERROR_PROTOCOL, "piece %u of a channel that has %u", place, up + down);
}

static int check_head(const struct reducing *s, const Peer__Head *head, uint64_t *number,
                      struct error *e)
{
    if (head->kind_case != PEER__HEAD__KIND_STREAMED_DATA)
        return error_set(e, ERROR_PROTOCOL,
                         "data of a step, but a reduction does not run in steps");
    const Peer__StreamedData *data = head->streamed_data;
    if (round_window_number(&s->window, data->round, number, e) != 0)
        return -1;
    if (data->n_pieces == 0)
        return error_set(e, ERROR_PROTOCOL, "a frame without pieces");
    if (data->n_sizes > 0)
        return error_set(e, ERROR_PROTOCOL, "%zu %s of pieces whose sizes are known", data->n_sizes,
                         text_plural(data->n_sizes, "size", "sizes"));
    return 0;
}

static int reducing_frame(struct engine *engine, unsigned port, const Peer__Head *head,
                          const struct extents *body, uint32_t body_length, struct error *e)
{
    struct reducing *s = of(engine);
    struct coming in = {.body = body, .left = body_length};
    uint64_t number = 0;

    if (check_head(s, head, &number, e) != 0)
        return -1;
    if (has_failed(s))
        return 0;
    const Peer__StreamedData *data = head->streamed_data;
    int result = check_digest(s, port, data, body, &in.left, e);
    if (result <= 0)
        return result;
    struct round *r = open_round(s, number);
    if (r == NULL)
        return 0;
    s->base.counts.port[port].rx_bytes += body_length;
    for (size_t i = 0; i < data->n_pieces && !has_failed(s); i++)
        if (take_piece(s, r, port, data->pieces[i], &in, e) != 0)
            return -1;
    if (in.left > 0 && !has_failed(s))
        return error_set(e, ERROR_PROTOCOL, "%u %s more than the frame's pieces have", in.left,
                         text_plural(in.left, "byte", "bytes"));
    finish_rounds(s);
    return 0;
}

static int reducing_clear(struct engine *engine, unsigned port, const Peer__Clear *clear,
                          struct error *e)
{
    (void)engine, (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "a clear, but a reduction does not run in steps");
}

/* --- going out --- */

struct filling {
    struct outgoing *frame;
    uint32_t pieces;
    uint32_t piece[PIECES_A_FRAME];
};

static int add_bytes(struct reducing *s, struct outgoing *frame, const struct extent *bytes)
{
    if (extents_add(&frame->body, bytes->slab, bytes->data, bytes->length) != 0)
        return engine_no_memory(&s->base);
    frame->body_length += bytes->length;
    return 0;
}

/* Takes the tree's next chunk up. Returns 1, or 0 if the source is not ready or we have failed. */
static int add_contribution(struct reducing *s, struct round *r, unsigned port, uint32_t index,
                            struct filling *filling)
{
    struct piece *piece = &r->piece[index];
    struct extent chunk;

    queues_take(&r->queues, port, urgency_up(s->trees, &s->trees->tree[index]));
    if (combine(s, r, index, &chunk) <= 0)
        return 0;
    int result = add_bytes(s, filling->frame, &chunk);
    chunk_drop(&chunk);
    s->base.counts.port[port].tx_blocks += piece->gone == 1;
    filling->piece[filling->pieces++] = s->trees->tree[index].place;
    consider(s, r, index); /* behind those with as far to go */
    if (piece->gone == piece->chunks)
        consider(s, find_round(s, r->base.number + 1), index);
    return result == 0;
}

/* The same of a result for a child. */
static int add_result(struct reducing *s, struct round *r, unsigned port, uint32_t child,
                      struct filling *filling)
{
    const struct reduction_trees *trees = s->trees;
    const struct reduction_tree *tree = &trees->tree[trees->child[child].tree];
    struct branch *branch = &r->branch[child];
    struct extent chunk = chain_pop(&s->chunks, &branch->down);
    int result = add_bytes(s, filling->frame, &chunk);

    chunk_drop(&chunk);
    s->base.counts.port[port].tx_blocks += branch->delivered++ == 0;
    filling->piece[filling->pieces++] = reduction_down_out(trees, &trees->child[child]);
    queues_take(&r->queues, port, urgency_down(trees, tree));
    if (!chain_is_empty(&branch->down))
        (void)queues_add(&r->queues, port, urgency_down(trees, tree), trees->count + child);
    r->base.left--;
    return result == 0;
}

static uint32_t next_length(const struct reducing *s, const struct round *r, uint32_t item)
{
    const struct reduction_trees *trees = s->trees;

    if (item < trees->count)
        return chunk_length(s, &r->piece[item], r->piece[item].gone);
    return chain_first(&s->chunks, &r->branch[item - trees->count].down)->length;
}

static void fill(struct reducing *s, struct round *r, unsigned port, struct filling *filling)
{
    const struct outgoing *frame = filling->frame;

    while (filling->pieces < PIECES_A_FRAME && frame->body.count + 1 < OUTGOING_MAX_EXTENTS &&
           !has_failed(s)) {
        uint32_t item = queues_peek(&r->queues, port);
        if (item == QUEUES_NONE || frame->body_length + next_length(s, r, item) > s->chunk)
            return;
        if (item < s->trees->count)
            (void)add_contribution(s, r, port, item, filling);
        else
            (void)add_result(s, r, port, item - s->trees->count, filling);
    }
}

static int add_digest(struct reducing *s, const Peer__StreamedData *data, struct outgoing *frame)
{
    uint8_t digest[DIGEST_SIZE];
    uint64_t seed = digest_seed(data->exchange, data->round, data->pieces, data->n_pieces);

    digest_write(digest, digest_extents(&frame->body, frame->body_length, seed));
    if (extents_copy(&frame->body, &s->writer, router_pool(s->base.set.router), digest,
                     sizeof digest) != 0)
        return engine_no_memory(&s->base);
    frame->body_length += DIGEST_SIZE;
    return 0;
}

/* The next frame of this round, or NULL if nothing of it can leave now. */
static struct outgoing *next_of_round(struct reducing *s, struct round *r, unsigned port)
{
    struct filling filling;
    Peer__StreamedData data = PEER__STREAMED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    if (queues_peek(&r->queues, port) == QUEUES_NONE)
        return NULL;
    filling.frame = cargo_frame(&s->cargo);
    filling.pieces = 0;
    if (filling.frame == NULL)
        return NULL;
    fill(s, r, port, &filling);
    data.exchange = s->base.set.handle;
    data.round = (uint32_t)(r->base.number & ENGINE_ROUND_MASK);
    data.call = engine_call(&s->base);
    data.n_pieces = filling.pieces;
    data.pieces = filling.piece;
    head.kind_case = PEER__HEAD__KIND_STREAMED_DATA;
    head.streamed_data = &data;
    if (filling.pieces > 0 && !s->options.unchecked && !has_failed(s))
        (void)add_digest(s, &data, filling.frame);
    return cargo_ship(&s->cargo, port, filling.frame, &head, filling.pieces > 0);
}

static struct outgoing *reducing_next(struct engine *engine, unsigned port)
{
    struct reducing *s = of(engine);
    struct round *r = next_round(s, s->base.rounds_finished);

    if (engine_has_lost(&s->base, port))
        return NULL;
    for (; r != NULL && !has_failed(s); r = next_round(s, r->base.number + 1)) {
        struct outgoing *frame = next_of_round(s, r, port);
        if (frame == NULL)
            continue;
        s->base.counts.port[port].combined_messages++;
        finish_rounds(s);
        return frame;
    }
    return NULL;
}

static void reducing_wake(struct engine *engine)
{
    struct reducing *s = of(engine);
    struct round *r = next_round(s, engine->rounds_finished);

    for (; r != NULL; r = next_round(s, r->base.number + 1)) {
        if (!r->stalled)
            continue;
        r->stalled = false;
        for (uint32_t i = 0; i < s->trees->count; i++)
            consider(s, r, i);
    }
    finish_rounds(s);
}

/* --- the rest --- */

static void describe_waiting(const struct reducing *s, const struct round *r, char *text,
                             size_t size)
{
    const struct reduction_trees *trees = s->trees;
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t up = 0, down = 0, first_up = NONE, first_down = NONE;

    for (uint32_t i = trees->edges; i-- > 0;) {
        if (r->branch[i].came < r->piece[trees->child[i].tree].chunks) {
            first_up = i;
            up++;
        }
    }
    for (uint32_t i = trees->count; s->options.everywhere && i-- > 0;) {
        if (!is_owner(&trees->tree[i]) && r->piece[i].returned < r->piece[i].chunks) {
            first_down = i;
            down++;
        }
    }
    if (first_up != NONE)
        (void)snprintf(text, size,
                       "waiting for %u %s, the first one to the block of node %u on port %s", up,
                       text_plural(up, "contribution", "contributions"),
                       trees->tree[trees->child[first_up].tree].owner,
                       torus_port_name(trees->child[first_up].port, name));
    else if (first_down != NONE)
        (void)snprintf(text, size, "waiting for %u %s, the first one from node %u on port %s", down,
                       text_plural(down, "result", "results"), trees->tree[first_down].owner,
                       torus_port_name(trees->tree[first_down].parent, name));
    else
        (void)snprintf(text, size, "still sending %llu %s", (unsigned long long)r->base.left,
                       text_plural(r->base.left, "chunk", "chunks"));
}

static void reducing_describe(const struct engine *engine, char *text, size_t size)
{
    const struct reducing *s = (const struct reducing *)engine;
    const struct round *r = find_round(s, engine->rounds_finished);

    if (r != NULL && r->base.left > 0)
        describe_waiting(s, r, text, size);
    else
        (void)snprintf(text, size, "%s",
                       engine->set.sink->ops->pending(engine->set.sink) > 0
                           ? "writing what has come in"
                           : "all sent and received");
}

static void reducing_free(struct engine *engine)
{
    struct reducing *s = of(engine);

    for (uint32_t i = 0; i < engine->set.window; i++) {
        struct round *r = round_window_slot(&s->window, i);
        if (r->base.open)
            empty_round(s, r);
        free_round(r);
    }
    cargo_close(&s->cargo);
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

static int check(const struct engine_setup *setup, const struct reduction_trees *trees,
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
            return error_set(e, ERROR_USAGE,
                             "the block for node %u has %llu %s, not whole elements of %u",
                             trees->tree[i].owner, (unsigned long long)size,
                             text_plural(size, "byte", "bytes"), element);
        empty = empty && size == 0;
    }
    if (setup->round_bytes % element != 0 || (setup->round_bytes == 0 && !empty))
        return error_set(e, ERROR_USAGE, "rounds of %u %s, not of whole elements of %u",
                         setup->round_bytes, text_plural(setup->round_bytes, "byte", "bytes"),
                         element);
    return 0;
}

struct engine *reducing_new(const struct engine_setup *setup, const struct reduction_trees *trees,
                            const struct reducing_options *options, struct error *e)
{
    if (check(setup, trees, options, e) != 0)
        return NULL;
    struct reducing *s = calloc(1, sizeof *s);
    if (s != NULL) {
        s->base.ops = &reducing_ops;
        s->base.set = *setup;
        s->options = *options;
        s->trees = trees;
        s->ports = torus_ports(engine_torus(setup));
        s->element = reduction_size(options->type);
        s->chunk = choose_chunk(setup, trees);
        chunks_init(&s->chunks);
        cargo_init(&s->cargo, &s->base, s->chunk);
        if (round_window_init(&s->window, &s->base, sizeof(struct round)) == 0)
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
    uint64_t bytes = 0, chunks = 0, chunk = choose_chunk(setup, trees);

    for (uint32_t i = 0; i < trees->count; i++) {
        const struct reduction_tree *tree = &trees->tree[i];
        uint64_t at, length = piece_length(&s, 0, tree, &at); /* later rounds are not longer */
        /* Each child's chunks, and our own part of one; then the same results for all children. */
        uint64_t kept = tree->children + (options->everywhere && tree->children > 0 ? 1u : 0u);
        bytes += kept * length + (length < chunk ? length : chunk);
        chunks += (kept + tree->children) * (length / chunk + 1);
    }
    bytes += trees->count * sizeof(struct piece) + trees->edges * sizeof(struct branch);
    bytes += chunks * (sizeof(struct chunk) + offsetof(struct slab, data));
    bytes += torus_ports(engine_torus(setup)) * (2 * trees->most_distance + 1) * 8;
    bytes += ((uint64_t)trees->count + trees->edges) * 4;
    return sizeof(struct reducing) + SLAB_SIZE + setup->window * (sizeof(struct round) + bytes);
}
