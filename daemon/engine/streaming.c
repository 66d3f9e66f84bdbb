#include "daemon/engine/streaming.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/frame_buffer.h"
#include "daemon/engine/queues.h"
#include "daemon/engine/round_window.h"
#include "proto/text.h"

#define PIECES_A_FRAME 448u /* bounds the head; the receiver unpacks it without allocating */
#define FILL_LEAST (16u * 1024u)
#define FILL_LEAST_OF_ONE (4u * 1024u) /* a broadcast, where relays have nothing else to send */
#define FILL_MOST (60u * 1024u)
#define FILLS_A_CHANNEL 64u /* so many frames a channel and round keep its relays busy */
#define NONE QUEUES_NONE

_Static_assert(CARGO_FRAME_MOST(FILL_MOST) <= FRAME_MAX_BODY, "the longest frame can be relayed");

/* Where one piece stands at this node. In an allgather each of the passages that have it in common
 * has a flow, into whose hold come references to the same bytes. */
struct flow {
    uint32_t length, came, gone; /* came: of our own only in an allgather */
    bool begun;                  /* its length is known */
    bool named;                  /* it has been in a frame that left from here */
    bool sure;                   /* it has arrived, and its digest is right */
    struct hold hold;            /* of a piece that passes through: what came and is not gone */
};

struct round {
    struct window_round base; /* left: flows that are not through */
    struct cut_round cut;
    struct own_block own;
    struct flow *flow;       /* by passage */
    struct piece_mark *mark; /* the same, if pieces have digests; else NULL */
    /* Items: flows, by port and hops still to go. Behind the ports: our own flows that the source had
     * nothing for (stalled_port()). */
    struct queues queues;
    uint8_t *room;   /* for the flows' cargo */
    bool starved;    /* allgather: the source had nothing for some of our own flows */
    uint32_t unread; /* allgather: pieces of our own block that are not read to their end */
};

struct streaming {
    struct engine base;
    const struct passages *passages;
    struct cut cut;
    struct cargo cargo;
    unsigned ports;
    uint32_t fill; /* bytes a frame is filled up to */
    struct round_window window;
    uint64_t *sure; /* with digests: by origin, where the last piece that is sure ends */
};

static struct streaming *of(struct engine *engine)
{
    return (struct streaming *)engine;
}

/* The round, if it is under way. */
static struct round *find_round(const struct streaming *s, uint64_t number)
{
    return round_window_find(&s->window, number);
}

/* The oldest round under way from this number on. */
static struct round *next_round(const struct streaming *s, uint64_t number)
{
    return round_window_next(&s->window, number);
}

/* The queue of what the source had nothing for. */
static unsigned stalled_port(const struct streaming *s)
{
    return s->ports;
}

/* Pieces with the longest way to go leave first. */
static void enqueue(struct streaming *s, struct round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    (void)queues_add(&r->queues, p->out, p->ahead, index);
}

/* Takes the first piece with this one's way to go out of its queue: it is this one. */
static void dequeue(struct streaming *s, struct round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    queues_take(&r->queues, p->out, p->ahead);
}

/* --- rounds --- */

static void free_round(struct round *r)
{
    free(r->flow);
    free(r->mark);
    queues_free(&r->queues);
    free(r->room);
    *r = (struct round){0};
}

/* All of it or nothing. */
static int allocate_round(struct streaming *s, struct round *r)
{
    r->flow = calloc((size_t)s->passages->count + 1, sizeof *r->flow);
    if (s->base.set.digests)
        r->mark = calloc((size_t)s->passages->count + 1, sizeof *r->mark);
    if (r->flow != NULL && (r->mark != NULL || !s->base.set.digests) &&
        queues_init(&r->queues, s->ports + 1, s->passages->most_ahead + 1, s->passages->count) ==
            0 &&
        cargo_room(&s->cargo, s->passages->count, &r->room) == 0)
        return 0;
    free_round(r);
    return -1;
}

static void pass_through(struct round *r, const struct passage *p)
{
    r->base.left--;
    if (p->out == PASSAGE_HERE && p->segment == 0)
        r->base.delivered++;
}

/* The size of the block that is cut into this piece and others, of our own block or where all have
 * the same. */
static uint64_t block_size(const struct streaming *s, const struct passage *p)
{
    const struct engine_setup *set = &s->base.set;

    if (set->uniform)
        return set->block_bytes;
    return set->source->ops->size(set->source, set->gather ? s->passages->rank : p->destination);
}

/* How the block that begins or ends here is cut. */
static struct cut_round cut_of(const struct streaming *s, const struct round *r,
                               const struct passage *p)
{
    const struct engine_setup *set = &s->base.set;
    struct cut cut = s->cut;

    if (set->incoming == NULL || set->incoming[p->source] == ENGINE_NOT_TOLD)
        return r->cut;
    cut.uniform = true;
    cut.least = 0; /* no piece is longer than one of the largest block */
    cut.block_bytes = p->out == PASSAGE_HERE ? set->incoming[p->source] : block_size(s, p);
    return cut_round(&cut, engine_round(&s->base, r->base.number));
}

/* Where a piece begins in its block. */
static uint64_t begin_of(const struct streaming *s, const struct round *r, const struct passage *p)
{
    const struct cut_round cut = cut_of(s, r, p);

    return cut_begin(&cut, p->segment);
}

static struct block_piece piece_of(const struct streaming *s, const struct round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    return (struct block_piece){.source = p->source,
                                .destination = s->base.set.gather ? p->source : p->destination,
                                .begin = begin_of(s, r, p),
                                .length = r->flow[index].length};
}

/* NULL: it has no digest. */
static struct piece_mark *mark_of(const struct round *r, uint32_t index)
{
    return r->mark != NULL ? &r->mark[index] : NULL;
}

static bool has_digest(const struct round *r, uint32_t index)
{
    return r->mark != NULL && piece_has_digest(r->flow[index].length);
}

/* Whether the passage has what it sends in common with the one before it. */
static bool joins(const struct streaming *s, uint32_t index)
{
    return s->base.set.gather && s->passages->joins[index];
}

static bool is_first_of_own(const struct streaming *s, uint32_t index)
{
    return index < s->passages->own && !joins(s, index);
}

/* The round's slot, made ready for it if that is its first use; NULL without memory. */
static struct round *open_round(struct streaming *s, uint64_t number)
{
    struct round *r = find_round(s, number);
    const struct engine_setup *set = &s->base.set;

    if (r != NULL)
        return r;
    r = round_window_slot(&s->window, number);
    if (r->flow == NULL && allocate_round(s, r) != 0) {
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    *r = (struct round){.base = {.number = number, .left = s->passages->count, .open = true},
                        .cut = cut_round(&s->cut, engine_round(&s->base, number)),
                        .flow = r->flow,
                        .mark = r->mark,
                        .queues = r->queues,
                        .room = r->room};
    r->own = (struct own_block){.at = r->cut.begin, .delivered = set->idle};
    queues_clear(&r->queues);
    if (r->mark != NULL)
        memset(r->mark, 0, s->passages->count * sizeof *r->mark);
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct passage *p = &s->passages->passage[i];
        struct flow *flow = &r->flow[i];
        *flow = (struct flow){.hold = cargo_hold(&s->cargo, r->room, i)};
        if (!set->uniform && p->in != PASSAGE_HERE)
            continue; /* its length comes with it */
        flow->begun = true;
        const struct cut_round cut = cut_of(s, r, p);
        flow->length = cut_length(&cut, block_size(s, p), p->segment);
        if (set->uniform && flow->length == 0) { /* known to everybody: never sent */
            if (p->out == PASSAGE_HERE)
                cargo_deliver_nothing(&s->cargo, p->source, begin_of(s, r, p));
            pass_through(r, p);
        }
        r->unread += is_first_of_own(s, i) && flow->length > 0;
    }
    return r;
}

/* Ends the rounds that are over, the oldest first. */
static void finish_rounds(struct streaming *s)
{
    struct round *r;

    do {
        r = find_round(s, s->base.rounds_finished);
        if (r == NULL || !r->base.admitted || s->base.failure.code != ERROR_NONE)
            return;
        if (!r->own.delivered && r->unread == 0)
            cargo_deliver_own(&s->cargo, s->passages->rank, &r->cut, &r->own);
    } while (r->own.delivered && round_window_end(&s->window));
}

static void streaming_admit(struct engine *engine, uint64_t number)
{
    struct streaming *s = of(engine);
    struct round *r = open_round(s, number);

    if (r == NULL)
        return;
    r->base.admitted = true;
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct passage *p = &s->passages->passage[i];
        if (p->in == PASSAGE_HERE && !(s->base.set.uniform && r->flow[i].length == 0))
            enqueue(s, r, i);
    }
    for (unsigned port = 0; port < s->ports; port++)
        if (queues_peek(&r->queues, port) != NONE)
            engine_wake_port(&s->base, port);
    finish_rounds(s);
}

/* --- coming in --- */

/* Allgather: bytes that have come for the first of the passages that have them in common come for
 * the others, too. `at`: how many had come before. */
static void share_bytes(struct streaming *s, struct round *r, uint32_t first, uint32_t at,
                        const struct extent *bytes)
{
    for (uint32_t i = first + 1; i < s->passages->count && joins(s, i); i++) {
        struct flow *flow = &r->flow[i];
        cargo_put(&s->cargo, &flow->hold, at, bytes);
        flow->came = at + bytes->length;
    }
}

/* Bytes of a piece, which go to the sink or wait to leave. Of what has come only what the sink has taken
 * counts if it fails. */
static void take_bytes(struct streaming *s, struct round *r, uint32_t index, uint32_t length,
                       const struct extents *body, struct extent_cursor *cursor)
{
    struct flow *flow = &r->flow[index];
    bool here = s->passages->passage[index].out == PASSAGE_HERE;
    struct block_piece piece = {0};

    if (here)
        piece = piece_of(s, r, index);
    while (length > 0) {
        struct extent bytes;
        uint32_t n = extents_take(body, cursor, length, &bytes);
        if (!here)
            cargo_put(&s->cargo, &flow->hold, flow->came, &bytes);
        else if (cargo_deliver(&s->cargo, &piece, flow->came, mark_of(r, index), &bytes) != 0)
            return;
        if (s->base.set.gather)
            share_bytes(s, r, index, flow->came, &bytes);
        flow->came += n;
        length -= n;
    }
}

/* A frame that is being taken in. */
struct arrival {
    const Peer__StreamedData *data;
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t have;         /* bytes of the body that are left */
    size_t sizes, digests; /* how many of the head's have been used */
};

/* The next piece that a frame names: checks it, and sets *length to its bytes in this frame, and *digest if
 * it ends there and has one. */
static int begin_piece(struct streaming *s, struct round *r, unsigned port, uint32_t place,
                       struct arrival *a, uint32_t *index, uint32_t *length, uint64_t *digest,
                       struct error *e)
{
    if (place >= s->passages->arrivals[port])
        return error_set(e, ERROR_PROTOCOL, "piece %u of a channel that has %u", place,
                         s->passages->arrivals[port]);
    *index = s->passages->arrival[port][place];
    struct flow *flow = &r->flow[*index];
    bool first = !flow->begun;
    if (first) {
        if (a->sizes == a->data->n_sizes)
            return error_set(e, ERROR_PROTOCOL, "piece %u without its size", place);
        flow->length = a->data->sizes[a->sizes++];
        if (flow->length > r->cut.stride)
            return error_set(e, ERROR_PROTOCOL, "a piece of %u %s, the longest has %u",
                             flow->length, text_plural(flow->length, "byte", "bytes"),
                             r->cut.stride);
        flow->begun = true;
    }
    *length = flow->length - flow->came < a->have ? flow->length - flow->came : a->have;
    if (*length == 0 && !(first && flow->length == 0))
        return error_set(e, ERROR_PROTOCOL, "piece %u has arrived already, or comes without a byte",
                         place);
    if (!has_digest(r, *index) || flow->came + *length < flow->length)
        return 0;
    if (a->digests == a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "piece %u without its digest", place);
    *digest = a->data->digests[a->digests++];
    return 0;
}

/* It has something to send. */
static void line_up(struct streaming *s, struct round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    if (queues_add(&r->queues, p->out, p->ahead, index))
        engine_wake_port(&s->base, p->out);
}

static void line_up_others(struct streaming *s, struct round *r, uint32_t first, uint64_t digest)
{
    for (uint32_t i = first + 1; i < s->passages->count && joins(s, i); i++) {
        r->flow[i].length = r->flow[first].length;
        r->flow[i].begun = true;
        if (r->mark != NULL)
            r->mark[i].digest = digest;
        line_up(s, r, i);
    }
}

/* All of a piece has come. */
static void compare(struct streaming *s, struct round *r, uint32_t index, uint64_t digest)
{
    const struct block_piece piece = piece_of(s, r, index);
    uint64_t *sure = &s->sure[piece.source];

    if (cargo_compare(&s->cargo, &piece, &r->mark[index], digest) != 0 || !has_digest(r, index) ||
        r->mark[index].digest != digest)
        return;
    r->flow[index].sure = true;
    if (piece.begin + piece.length > *sure)
        *sure = piece.begin + piece.length;
}

/* `digest`: of the piece, if it ends here and has one. */
static void take_piece(struct streaming *s, struct round *r, uint32_t index, uint32_t length,
                       struct arrival *a, uint64_t digest)
{
    const struct passage *p = &s->passages->passage[index];
    struct flow *flow = &r->flow[index];

    take_bytes(s, r, index, length, a->body, &a->cursor);
    if (s->base.failure.code != ERROR_NONE)
        return;
    if (p->out != PASSAGE_HERE) {
        if (r->mark != NULL)
            r->mark[index].digest = digest;
        line_up(s, r, index);
        return;
    }
    if (s->base.set.gather)
        line_up_others(s, r, index, digest);
    if (flow->length == 0)
        cargo_deliver_nothing(&s->cargo, p->source, begin_of(s, r, p));
    if (flow->came < flow->length)
        return;
    if (r->mark != NULL)
        compare(s, r, index, digest);
    pass_through(r, p);
}

/* Neither the first bytes nor the last. */
static bool is_within(const struct flow *flow, uint32_t length)
{
    return flow->came > 0 && flow->came + length < flow->length;
}

static int streaming_frame(struct engine *engine, unsigned port, const Peer__Head *head,
                           const struct extents *body, uint32_t body_length, struct error *e)
{
    if (head->kind_case != PEER__HEAD__KIND_STREAMED_DATA)
        return error_set(e, ERROR_PROTOCOL,
                         "data of a step, but the exchange does not run in steps");
    const Peer__StreamedData *data = head->streamed_data;
    struct streaming *s = of(engine);
    uint64_t number = 0;
    struct arrival a = {.data = data, .body = body, .have = body_length};

    if (round_window_number(&s->window, data->round, &number, e) != 0)
        return -1;
    if (data->n_pieces == 0)
        return error_set(e, ERROR_PROTOCOL, "a frame without pieces");
    if (s->base.failure.code != ERROR_NONE)
        return 0;
    struct round *r = open_round(s, number);
    if (r == NULL)
        return 0;
    s->base.counts.port[port].rx_bytes += body_length;
    for (size_t i = 0; i < data->n_pieces; i++) {
        uint32_t index = NONE, length = 0;
        uint64_t digest = 0;
        if (begin_piece(s, r, port, data->pieces[i], &a, &index, &length, &digest, e) != 0)
            return -1;
        if (i + 1 < data->n_pieces && length < r->flow[index].length - r->flow[index].came)
            return error_set(
                e, ERROR_PROTOCOL, "%u %s less than the frame's pieces have",
                r->flow[index].length - r->flow[index].came - length,
                text_plural(r->flow[index].length - r->flow[index].came - length, "byte", "bytes"));
        if (data->n_pieces == 1 && is_within(&r->flow[index], length) &&
            engine_crumb(&s->base, port, length, e) != 0)
            return -1;
        take_piece(s, r, index, length, &a, digest);
        if (s->base.failure.code != ERROR_NONE)
            return 0; /* nothing more counts as arrived */
        a.have -= length;
    }
    if (a.have > 0)
        return error_set(e, ERROR_PROTOCOL, "%u %s more than the frame's pieces have", a.have,
                         text_plural(a.have, "byte", "bytes"));
    if (a.sizes < data->n_sizes)
        return error_set(e, ERROR_PROTOCOL, "%zu %s more than pieces begin in it",
                         data->n_sizes - a.sizes,
                         text_plural(data->n_sizes - a.sizes, "size", "sizes"));
    if (a.digests < data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "%zu %s more than pieces end in it",
                         data->n_digests - a.digests,
                         text_plural(data->n_digests - a.digests, "digest", "digests"));
    finish_rounds(s);
    return 0;
}

static int streaming_clear(struct engine *engine, unsigned port, const Peer__Clear *clear,
                           struct error *e)
{
    (void)engine, (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "a clear, but the exchange does not run in steps");
}

/* --- going out --- */

/* Whether the piece of the round before at the same place has been read: a source is read, and a
 * sink written, front to back. */
static bool predecessor_gone(const struct streaming *s, const struct round *r, uint32_t index)
{
    const struct round *before;

    if (r->base.number == s->base.rounds_finished)
        return true;
    before = find_round(s, r->base.number - 1);
    if (before == NULL)
        return true;
    const struct flow *flow = &before->flow[index];
    return (s->base.set.gather ? flow->came : flow->gone) == flow->length;
}

/* Flows of our own block have something to ask the source for again. */
static void feed(struct streaming *s, struct round *r)
{
    r->starved = false;
    for (uint32_t i = 0; i < s->passages->own; i++)
        if (r->flow[i].gone < r->flow[i].length)
            line_up(s, r, i);
}

/* A piece of our own block has been read to its end; the one behind it may have waited for that. */
static void end_reading(struct streaming *s, struct round *r)
{
    struct round *after = find_round(s, r->base.number + 1);

    r->own.delivered = --r->unread == 0;
    if (after != NULL && after->starved)
        feed(s, after);
}

/* Allgather: reads up to `most` bytes of a piece of our own block, for all ports by which it leaves,
 * and for ourselves. The round's memory holds what has not left by all of them. */
static void read_own(struct streaming *s, struct round *r, uint32_t index, uint32_t most)
{
    uint32_t first = index;

    while (joins(s, first))
        first--;
    struct flow *flow = &r->flow[first];
    const struct block_piece piece = piece_of(s, r, first);
    if (most > flow->length - flow->came)
        most = flow->length - flow->came;
    if (most == 0 || !predecessor_gone(s, r, first))
        return;
    while (most > 0) {
        struct extent bytes;
        if (!cargo_read_own(&s->cargo, &piece, flow->came, mark_of(r, first), most, &bytes))
            break;
        cargo_put(&s->cargo, &flow->hold, flow->came, &bytes);
        share_bytes(s, r, first, flow->came, &bytes);
        flow->came += bytes.length;
        most -= bytes.length;
        slab_unref(bytes.slab);
        if (r->starved)
            feed(s, r);
    }
    if (flow->came < flow->length)
        return;
    for (uint32_t i = first + 1; r->mark != NULL && i < s->passages->count && joins(s, i); i++)
        r->mark[i].digest = r->mark[first].digest;
    end_reading(s, r);
}

/* move_bytes() of our own block in an allgather. */
static uint32_t move_shared(struct streaming *s, struct round *r, uint32_t index, uint32_t most,
                            struct outgoing *frame)
{
    struct flow *flow = &r->flow[index];

    if (flow->came - flow->gone < most)
        read_own(s, r, index, most - (flow->came - flow->gone));
    if (s->base.failure.code != ERROR_NONE)
        return 0; /* then the hold may lack what has come */
    if (most > flow->came - flow->gone)
        most = flow->came - flow->gone;
    return most > 0 ? cargo_load(&s->cargo, &flow->hold, flow->gone, NULL, most, frame) : 0;
}

/* Moves up to `most` bytes of a piece into the frame. Returns how many; 0 if there are none yet. */
static uint32_t move_bytes(struct streaming *s, struct round *r, uint32_t index, uint32_t most,
                           struct outgoing *frame)
{
    const struct passage *p = &s->passages->passage[index];
    struct flow *flow = &r->flow[index];

    if (p->in != PASSAGE_HERE)
        return cargo_load(&s->cargo, &flow->hold, flow->gone, NULL, most, frame);
    if (s->base.set.gather)
        return move_shared(s, r, index, most, frame);
    if (!predecessor_gone(s, r, index))
        return 0;
    const struct block_piece piece = piece_of(s, r, index);
    return cargo_load_own(&s->cargo, &piece, flow->gone, mark_of(r, index), most, frame);
}

/* What the source has nothing for waits for streaming_wake(); in an allgather also for another port
 * that asks it successfully. */
static void stall(struct streaming *s, struct round *r, uint32_t index)
{
    if (s->base.set.gather) {
        r->starved = true;
        return;
    }
    (void)queues_add(&r->queues, stalled_port(s), 0, index);
}

struct filling {
    uint32_t pieces, sizes, digests;
    uint32_t piece[PIECES_A_FRAME], size[PIECES_A_FRAME];
    uint64_t digest[PIECES_A_FRAME];
};

/* Adds what there is of a piece, as far as there is room. Returns whether the frame may take
 * another one: the last piece alone may be there in part. */
static bool add_piece(struct streaming *s, struct round *r, uint32_t index, struct outgoing *frame,
                      struct filling *filling)
{
    const struct passage *p = &s->passages->passage[index];
    struct flow *flow = &r->flow[index];
    bool own = p->in == PASSAGE_HERE;
    uint32_t there = (own ? flow->length : flow->came) - flow->gone;
    uint32_t most = cargo_fits(frame, s->fill, there);
    uint32_t moved = most > 0 ? move_bytes(s, r, index, most, frame) : 0;

    flow->gone += moved;
    if (moved == 0 && flow->length > 0) { /* the source has nothing yet; or we have failed */
        dequeue(s, r, index);
        stall(s, r, index);
        return true;
    }
    filling->piece[filling->pieces++] = p->place;
    if (!s->base.set.uniform && !flow->named)
        filling->size[filling->sizes++] = flow->length;
    s->base.counts.port[p->out].tx_blocks += !flow->named;
    flow->named = true;
    dequeue(s, r, index);
    if (flow->gone == flow->length) {
        if (has_digest(r, index))
            filling->digest[filling->digests++] = r->mark[index].digest;
        pass_through(r, p);
        return true;
    }
    if (own || flow->gone < flow->came)
        enqueue(s, r, index); /* behind those with as far to go */
    return false;
}

static void fill(struct streaming *s, struct round *r, unsigned port, struct outgoing *frame,
                 struct filling *filling)
{
    bool more = true;

    filling->pieces = filling->sizes = filling->digests = 0;
    while (more && frame->body_length < s->fill && filling->pieces < PIECES_A_FRAME &&
           frame->body.count < OUTGOING_MAX_EXTENTS && s->base.failure.code == ERROR_NONE) {
        uint32_t index = queues_peek(&r->queues, port);
        more = index != NONE && add_piece(s, r, index, frame, filling);
    }
}

/* The next frame of this round, or NULL if nothing of it can leave now. */
static struct outgoing *next_of_round(struct streaming *s, struct round *r, unsigned port)
{
    struct outgoing *frame = queues_peek(&r->queues, port) != NONE ? cargo_frame(&s->cargo) : NULL;
    struct filling filling;
    Peer__StreamedData data = PEER__STREAMED_DATA__INIT;
    Peer__Head head = PEER__HEAD__INIT;

    if (frame == NULL)
        return NULL;
    fill(s, r, port, frame, &filling);
    data.exchange = s->base.set.handle;
    data.round = (uint32_t)(r->base.number & ENGINE_ROUND_MASK);
    data.n_pieces = filling.pieces;
    data.call = engine_call(&s->base);
    data.pieces = filling.piece;
    data.n_sizes = filling.sizes;
    data.sizes = filling.size;
    data.n_digests = filling.digests;
    data.digests = filling.digest;
    head.kind_case = PEER__HEAD__KIND_STREAMED_DATA;
    head.streamed_data = &data;
    return cargo_ship(&s->cargo, port, frame, &head, filling.pieces > 0);
}

static struct outgoing *streaming_next(struct engine *engine, unsigned port)
{
    struct streaming *s = of(engine);
    struct round *r = next_round(s, s->base.rounds_finished);

    if (engine_has_lost(&s->base, port))
        return NULL;
    for (; r != NULL && s->base.failure.code == ERROR_NONE; r = next_round(s, r->base.number + 1)) {
        struct outgoing *frame = next_of_round(s, r, port);
        if (frame == NULL)
            continue;
        s->base.counts.port[port].combined_messages++;
        finish_rounds(s);
        return frame;
    }
    return NULL;
}

static void streaming_wake(struct engine *engine)
{
    struct streaming *s = of(engine);
    struct round *r = next_round(s, engine->rounds_finished);

    for (; r != NULL; r = next_round(s, r->base.number + 1)) {
        for (uint32_t index; (index = queues_peek(&r->queues, stalled_port(s))) != NONE;) {
            queues_take(&r->queues, stalled_port(s), 0);
            line_up(s, r, index);
        }
        if (r->starved)
            feed(s, r);
    }
    finish_rounds(s);
}

static void streaming_describe(const struct engine *engine, char *text, size_t size)
{
    const struct streaming *s = (const struct streaming *)engine;
    const struct round *r = find_round(s, engine->rounds_finished);
    char name[TORUS_PORT_NAME_SIZE];
    uint32_t waiting = 0, first = NONE;

    if (r == NULL || r->base.left == 0) {
        const char *state = "all sent and received";
        if (engine->set.sink->ops->pending(engine->set.sink) > 0)
            state = "writing what has come in";
        else if (r != NULL && !r->own.delivered)
            state = "reading its own block for itself";
        (void)snprintf(text, size, "%s", state);
        return;
    }
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct flow *flow = &r->flow[i];
        if (s->passages->passage[i].in == PASSAGE_HERE || joins(s, i) ||
            (flow->begun && flow->came == flow->length))
            continue;
        waiting++;
        if (first == NONE)
            first = i;
    }
    if (first == NONE)
        (void)snprintf(text, size, "still sending %llu %s", (unsigned long long)r->base.left,
                       text_plural(r->base.left, "piece", "pieces"));
    else
        (void)snprintf(
            text, size, "waiting for %u %s, the first one from node %u on port %s to node %u",
            waiting, text_plural(waiting, "piece", "pieces"), s->passages->passage[first].source,
            torus_port_name(s->passages->passage[first].in, name),
            engine_neighbour(engine, s->passages->passage[first].in));
}

static void streaming_free(struct engine *engine)
{
    struct streaming *s = of(engine);

    for (uint32_t i = 0; i < engine->set.window; i++)
        free_round(round_window_slot(&s->window, i));
    cargo_close(&s->cargo);
    free(s->sure);
    round_window_free(&s->window);
    free(s);
}

/* What a frame is filled up to: small beside what a channel carries, so that relays can begin
 * early, and else as much as a frame may have. */
static uint32_t choose_fill(const struct streaming *s)
{
    const struct engine_setup *set = &s->base.set;
    uint64_t most = 0;

    for (unsigned port = 0; port < s->ports; port++)
        if (s->passages->departures[port] > most)
            most = s->passages->departures[port];
    uint32_t least = s->passages->source != TORUS_NO_NODE ? FILL_LEAST_OF_ONE : FILL_LEAST;
    most = most * (set->round_bytes / set->segments + 1) / FILLS_A_CHANNEL;
    return most < least ? least : most > FILL_MOST ? FILL_MOST : (uint32_t)most;
}

/* How much of a block has arrived in rounds that are over, so many bytes of it at the most. A block's last piece
 * may have no digest, and one within it if rounds are cut so. */
static uint64_t finished_bytes(const struct streaming *s, uint32_t origin, uint64_t most)
{
    const struct engine_setup *set = &s->base.set;
    uint64_t last = set->round_bytes % cut_round(&s->cut, 0).stride;
    uint64_t end = most;

    if (!set->digests)
        return most;
    if (origin == s->passages->rank)
        return most < set->source->ops->size(set->source, origin)
                   ? most
                   : set->source->ops->size(set->source, origin);
    if (s->sure[origin] < end)
        end = s->sure[origin];
    if (end > set->round_bytes && last > 0 && !piece_has_digest((uint32_t)last))
        end = set->round_bytes - last;
    return end;
}

static void streaming_arrived(const struct engine *engine,
                              void (*tell)(void *context, uint32_t origin, uint64_t begin,
                                           uint64_t end),
                              void *context)
{
    const struct streaming *s = (const struct streaming *)engine;
    uint64_t whole = engine->rounds_finished * s->cut.round_bytes;

    if (engine->failure.code != ERROR_NONE && engine->failure.code != ERROR_DAMAGED)
        return; /* perhaps more has come than the sink has taken */
    for (uint32_t origin = 0; whole > 0 && origin < engine_torus(&engine->set)->nodes; origin++)
        tell(context, origin, 0, finished_bytes(s, origin, whole));
    const struct round *r = next_round(s, engine->rounds_finished);
    for (; r != NULL; r = next_round(s, r->base.number + 1)) {
        tell(context, s->passages->rank, r->cut.begin, r->own.at);
        for (uint32_t k = 0; k < s->passages->count; k++) {
            const struct passage *p = &s->passages->passage[k];
            if (p->out == PASSAGE_HERE && (r->mark == NULL || r->flow[k].sure))
                tell(context, p->source, begin_of(s, r, p), begin_of(s, r, p) + r->flow[k].came);
        }
    }
}

static const struct engine_ops streaming_ops = {
    .free = streaming_free,
    .admit = streaming_admit,
    .frame = streaming_frame,
    .clear = streaming_clear,
    .next = streaming_next,
    .wake = streaming_wake,
    .describe = streaming_describe,
    .arrived = streaming_arrived,
};

struct engine *streaming_new(const struct engine_setup *setup, const struct passages *passages,
                             struct error *e)
{
    struct streaming *s = calloc(1, sizeof *s);

    if (s != NULL) {
        s->base.ops = &streaming_ops;
        s->base.set = *setup;
        s->passages = passages;
        s->ports = torus_ports(engine_torus(setup));
        s->cut = engine_cut(setup, STREAMING_LEAST_PIECE);
        cargo_init(&s->cargo, &s->base, cut_longest(&s->cut));
        s->fill = choose_fill(s);
        if (setup->digests)
            s->sure = calloc(engine_torus(setup)->nodes, sizeof *s->sure);
        if ((s->sure != NULL || !setup->digests) &&
            round_window_init(&s->window, &s->base, sizeof(struct round)) == 0)
            return &s->base;
        free(s->sure);
        free(s);
    }
    (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    return NULL;
}
