#include "daemon/torusd/engine/streaming.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/torusd/engine/streaming_progress.h"
#include "proto/text.h"

/* Frees what a slot of the window owns. */
static void streaming_free_round(struct streaming_round *r)
{
    free(r->flow);
    free(r->mark);
    queues_free(&r->queues);
    free(r->room);
    *r = (struct streaming_round){0};
}

/* Allocates all memory of a round or none. */
static int allocate_streaming_round(struct streaming *s, struct streaming_round *r)
{
    r->flow = calloc((size_t)s->passages->count + 1, sizeof *r->flow);
    if (s->base.set.digests)
        r->mark = calloc((size_t)s->passages->count + 1, sizeof *r->mark);
    if (r->flow != NULL && (r->mark != NULL || !s->base.set.digests) &&
        queues_init(&r->queues, s->ports + 1, s->passages->most_ahead + 1, s->passages->count) ==
            0 &&
        frame_buffer_room(&s->buffer, s->passages->count, &r->room) == 0)
        return 0;
    streaming_free_round(r);
    return -1;
}

static bool is_first_of_own_block(const struct streaming *s, uint32_t index)
{
    return index < s->passages->own && !streaming_shares_piece(s, index);
}

/* Returns the round's slot, and prepares it at its first use. NULL if there is no memory: the engine has
 * failed. */
static struct streaming_round *streaming_open_round(struct streaming *s, uint64_t number)
{
    struct streaming_round *r = round_window_find(&s->window, number);
    const struct engine_setup *set = &s->base.set;

    if (r != NULL)
        return r;
    r = round_window_slot(&s->window, number);
    if (r->flow == NULL && allocate_streaming_round(s, r) != 0) {
        (void)engine_no_memory(&s->base);
        return NULL;
    }
    *r = (struct streaming_round){
        .base = {.number = number, .left = s->passages->count, .open = true},
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
        struct streaming_flow *flow = &r->flow[i];
        *flow = (struct streaming_flow){.hold = frame_buffer_hold(&s->buffer, r->room, i)};
        if (!set->uniform && p->in != PASSAGE_HERE)
            continue; /* the frames tell its length */
        flow->begun = true;
        const struct cut_round cut = streaming_cut(s, r, p);
        flow->length = cut_length(&cut, streaming_block_size(s, p), p->segment);
        /* an empty piece is not sent, because every node knows that it is empty */
        if (set->uniform && flow->length == 0) {
            if (p->out == PASSAGE_HERE)
                frame_buffer_deliver_nothing(&s->buffer, p->source, streaming_piece_begin(s, r, p));
            streaming_count_finished(r, p);
        }
        r->unread += is_first_of_own_block(s, i) && flow->length > 0;
    }
    return r;
}

/* Ends the rounds that are complete, the oldest first. */
static void streaming_finish_rounds(struct streaming *s)
{
    struct streaming_round *r;

    do {
        r = round_window_find(&s->window, s->base.rounds_finished);
        if (r == NULL || !r->base.admitted || s->base.failure.code != ERROR_NONE)
            return;
        if (!r->own.delivered && r->unread == 0)
            frame_buffer_deliver_own(&s->buffer, s->passages->rank, &r->cut, &r->own);
    } while (r->own.delivered && round_window_end(&s->window));
}

/* To be called when the source may have new bytes: queues the round's flows again for which it had none. */
static void streaming_requeue_starved(struct streaming *s, struct streaming_round *r)
{
    r->starved = false;
    for (uint32_t i = 0; i < s->passages->own; i++)
        if (r->flow[i].sent < r->flow[i].length)
            streaming_enqueue_and_wake(s, r, i);
}

/* Counts a piece of the own block that has been read to its end. The next piece of the block may have waited
 * for that. */
static void end_reading_own(struct streaming *s, struct streaming_round *r)
{
    struct streaming_round *after = round_window_find(&s->window, r->base.number + 1);

    r->own.delivered = --r->unread == 0;
    if (after != NULL && after->starved)
        streaming_requeue_starved(s, after);
}

/* Allgather: reads up to `most` bytes of a piece of the own block, for all ports through which it leaves, and
 * for this node. The round holds the bytes until they have left by all ports. */
static void read_own_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                           uint32_t most)
{
    uint32_t first = index;

    while (streaming_shares_piece(s, first))
        first--;
    struct streaming_flow *flow = &r->flow[first];
    const struct block_piece piece = streaming_piece(s, r, first);
    if (most > flow->length - flow->arrived)
        most = flow->length - flow->arrived;
    if (most == 0 || !streaming_predecessor_read(s, r, first))
        return;
    while (most > 0) {
        struct extent bytes;
        if (!frame_buffer_read_own(&s->buffer, &piece, flow->arrived, streaming_mark(r, first),
                                   most, &bytes))
            break;
        frame_buffer_put(&s->buffer, &flow->hold, flow->arrived, &bytes);
        streaming_share_bytes(s, r, first, flow->arrived, &bytes);
        flow->arrived += bytes.length;
        most -= bytes.length;
        slab_unref(bytes.slab);
        if (r->starved)
            streaming_requeue_starved(s, r);
    }
    if (flow->arrived < flow->length)
        return;
    for (uint32_t i = first + 1;
         r->mark != NULL && i < s->passages->count && streaming_shares_piece(s, i); i++)
        r->mark[i].digest = r->mark[first].digest;
    end_reading_own(s, r);
}

/* Loads up to `most` bytes of a piece into the frame, and reads the missing ones for all ports. Returns how
 * many bytes; 0 if there are none yet, or the engine has failed. */
static uint32_t streaming_move_shared(struct streaming *s, struct streaming_round *r,
                                      uint32_t index, uint32_t most, struct outgoing *frame)
{
    struct streaming_flow *flow = &r->flow[index];

    if (flow->arrived - flow->sent < most)
        read_own_piece(s, r, index, most - (flow->arrived - flow->sent));
    if (s->base.failure.code != ERROR_NONE)
        return 0; /* after a failure the hold may lack bytes that count as arrived */
    if (most > flow->arrived - flow->sent)
        most = flow->arrived - flow->sent;
    return most > 0 ? frame_buffer_load(&s->buffer, &flow->hold, flow->sent, NULL, most, frame) : 0;
}

/* Takes bytes of a piece, which go to the sink or wait to leave. If the sink fails, only bytes that it has
 * accepted count as arrived. */
static void take_piece_bytes(struct streaming *s, struct streaming_round *r, uint32_t index,
                             uint32_t length, const struct extents *body,
                             struct extent_cursor *cursor)
{
    struct streaming_flow *flow = &r->flow[index];
    bool here = s->passages->passage[index].out == PASSAGE_HERE;
    struct block_piece piece = {0};

    if (here)
        piece = streaming_piece(s, r, index);
    while (length > 0) {
        struct extent bytes;
        uint32_t n = extents_take(body, cursor, length, &bytes);
        if (!here)
            frame_buffer_put(&s->buffer, &flow->hold, flow->arrived, &bytes);
        else if (frame_buffer_deliver(&s->buffer, &piece, flow->arrived, streaming_mark(r, index),
                                      &bytes) != 0)
            return;
        if (s->base.set.gather)
            streaming_share_bytes(s, r, index, flow->arrived, &bytes);
        flow->arrived += n;
        length -= n;
    }
}

/* A frame that is being processed. */
struct streaming_arrival {
    const struct peer_streamed_data *data;
    const struct extents *body;
    struct extent_cursor cursor;
    uint32_t have;         /* bytes of the body that are not processed yet */
    size_t sizes, digests; /* how many entries of the head have been used */
};

/* Checks the next piece that a frame names, and sets *length to its bytes in this frame, and *digest if the
 * piece ends there and has one. */
static int begin_arriving_piece(struct streaming *s, struct streaming_round *r, unsigned port,
                                uint32_t place, struct streaming_arrival *a, uint32_t *index,
                                uint32_t *length, uint64_t *digest, struct error *e)
{
    if (place >= s->passages->arrivals[port])
        return error_set(e, ERROR_PROTOCOL, "piece %u out of range: the channel has %u pieces",
                         place, s->passages->arrivals[port]);
    *index = s->passages->arrival[port][place];
    struct streaming_flow *flow = &r->flow[*index];
    bool first = !flow->begun;
    if (first) {
        if (a->sizes == a->data->n_sizes)
            return error_set(e, ERROR_PROTOCOL, "piece %u without a size", place);
        flow->length = a->data->sizes[a->sizes++];
        if (flow->length > r->cut.stride)
            return error_set(e, ERROR_PROTOCOL, "a piece of %u %s, but no piece has more than %u",
                             flow->length, text_plural(flow->length, "byte", "bytes"),
                             r->cut.stride);
        flow->begun = true;
    }
    *length = flow->length - flow->arrived < a->have ? flow->length - flow->arrived : a->have;
    if (*length == 0 && !(first && flow->length == 0))
        return error_set(e, ERROR_PROTOCOL,
                         "piece %u arrived twice, or the frame has none of its bytes", place);
    if (!streaming_has_digest(r, *index) || flow->arrived + *length < flow->length)
        return 0;
    if (a->digests == a->data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "piece %u without a digest", place);
    *digest = a->data->digests[a->digests++];
    return 0;
}

static void line_up_shared(struct streaming *s, struct streaming_round *r, uint32_t first,
                           uint64_t digest)
{
    for (uint32_t i = first + 1; i < s->passages->count && streaming_shares_piece(s, i); i++) {
        r->flow[i].length = r->flow[first].length;
        r->flow[i].begun = true;
        if (r->mark != NULL)
            r->mark[i].digest = digest;
        streaming_enqueue_and_wake(s, r, i);
    }
}

/* Compares the digest of a piece that has arrived whole. */
static void compare_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                          uint64_t digest)
{
    const struct block_piece piece = streaming_piece(s, r, index);
    uint64_t *verified_end = &s->verified_end[piece.source];

    if (frame_buffer_compare(&s->buffer, &piece, &r->mark[index], digest) != 0 ||
        !streaming_has_digest(r, index) || r->mark[index].digest != digest)
        return;
    r->flow[index].verified = true;
    if (piece.begin + piece.length > *verified_end)
        *verified_end = piece.begin + piece.length;
}

/* Takes the bytes of a piece. `digest` is that of the piece, if it ends in this frame and has one. */
static void take_arriving_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                                uint32_t length, struct streaming_arrival *a, uint64_t digest)
{
    const struct passage *p = &s->passages->passage[index];
    struct streaming_flow *flow = &r->flow[index];

    take_piece_bytes(s, r, index, length, a->body, &a->cursor);
    if (s->base.failure.code != ERROR_NONE)
        return;
    if (p->out != PASSAGE_HERE) {
        if (r->mark != NULL)
            r->mark[index].digest = digest;
        streaming_enqueue_and_wake(s, r, index);
        return;
    }
    if (s->base.set.gather)
        line_up_shared(s, r, index, digest);
    if (flow->length == 0)
        frame_buffer_deliver_nothing(&s->buffer, p->source, streaming_piece_begin(s, r, p));
    if (flow->arrived < flow->length)
        return;
    if (r->mark != NULL)
        compare_piece(s, r, index, digest);
    streaming_count_finished(r, p);
}

/* Whether bytes are neither the first nor the last of their piece. */
static bool is_within_piece(const struct streaming_flow *flow, uint32_t length)
{
    return flow->arrived > 0 && flow->arrived + length < flow->length;
}

/* engine_ops.frame */
static int streaming_frame(struct engine *engine, unsigned port, const struct peer_message *message,
                           const struct extents *body, uint32_t body_length, struct error *e)
{
    if (message->kind != PEER_STREAMED_DATA)
        return error_set(e, ERROR_PROTOCOL,
                         "data of a step, but the exchange does not run in steps");
    const struct peer_streamed_data *data = &message->streamed_data;
    struct streaming *s = streaming_of(engine);
    uint64_t number = 0;
    struct streaming_arrival a = {.data = data, .body = body, .have = body_length};

    if (round_window_number(&s->window, data->round, &number, e) != 0)
        return -1;
    if (data->n_pieces == 0)
        return error_set(e, ERROR_PROTOCOL, "a frame without pieces");
    if (s->base.failure.code != ERROR_NONE)
        return 0;
    struct streaming_round *r = streaming_open_round(s, number);
    if (r == NULL)
        return 0;
    s->base.counts.port[port].rx_bytes += body_length;
    for (size_t i = 0; i < data->n_pieces; i++) {
        uint32_t index = 0, length = 0;
        uint64_t digest = 0;
        if (begin_arriving_piece(s, r, port, data->pieces[i], &a, &index, &length, &digest, e) != 0)
            return -1;
        if (i + 1 < data->n_pieces && length < r->flow[index].length - r->flow[index].arrived)
            return error_set(e, ERROR_PROTOCOL,
                             "a frame has %u %s less than the pieces that it names",
                             r->flow[index].length - r->flow[index].arrived - length,
                             text_plural(r->flow[index].length - r->flow[index].arrived - length,
                                         "byte", "bytes"));
        if (data->n_pieces == 1 && is_within_piece(&r->flow[index], length) &&
            engine_count_short_frame(&s->base, port, length, e) != 0)
            return -1;
        take_arriving_piece(s, r, index, length, &a, digest);
        if (s->base.failure.code != ERROR_NONE)
            return 0; /* further bytes do not count as arrived */
        a.have -= length;
    }
    if (a.have > 0)
        return error_set(e, ERROR_PROTOCOL, "a frame has %u %s more than the pieces that it names",
                         a.have, text_plural(a.have, "byte", "bytes"));
    if (a.sizes < data->n_sizes)
        return error_set(e, ERROR_PROTOCOL, "a frame has %zu %s more than pieces that begin in it",
                         data->n_sizes - a.sizes,
                         text_plural(data->n_sizes - a.sizes, "size", "sizes"));
    if (a.digests < data->n_digests)
        return error_set(e, ERROR_PROTOCOL, "a frame has %zu %s more than pieces that end in it",
                         data->n_digests - a.digests,
                         text_plural(data->n_digests - a.digests, "digest", "digests"));
    streaming_finish_rounds(s);
    return 0;
}

/* engine_ops.passes */
static int streaming_passes(struct engine *engine, unsigned port,
                            const struct peer_message *message)
{
    const struct streaming *s = streaming_of(engine);
    const struct peer_streamed_data *data = &message->streamed_data;

    if (message->kind != PEER_STREAMED_DATA || data->n_pieces != 1 || s->base.set.gather ||
        s->buffer.room > 0 || data->pieces[0] >= s->passages->arrivals[port])
        return -1;
    const uint8_t out = s->passages->passage[s->passages->arrival[port][data->pieces[0]]].out;
    if (out == PASSAGE_HERE || engine_has_lost(engine, out))
        return -1;
    return (int)engine_port(engine, out);
}

#define PLACED_PIECES_MOST 64u /* of a frame; each is compared with all before it */

/* Whether streaming_frame() accepts a frame now, whose pieces are all known and different. Then sets `length` to the bytes
 * of each piece that it has. Changes nothing. */
static bool is_acceptable(const struct streaming *s, const struct streaming_round *r, unsigned port,
                          const struct peer_streamed_data *data, uint32_t body_length,
                          uint32_t *length)
{
    size_t digests = 0;

    if (data->n_pieces == 0 || data->n_pieces > PLACED_PIECES_MOST || data->n_sizes > 0)
        return false;
    for (size_t i = 0; i < data->n_pieces; i++) {
        for (size_t before = 0; before < i; before++)
            if (data->pieces[before] == data->pieces[i])
                return false;
        if (data->pieces[i] >= s->passages->arrivals[port])
            return false;
        const uint32_t index = s->passages->arrival[port][data->pieces[i]];
        const struct streaming_flow *flow = &r->flow[index];
        const uint32_t missing = flow->length - flow->arrived;
        length[i] = missing < body_length ? missing : body_length;
        if (!flow->begun || length[i] == 0 || (length[i] < missing && i + 1 < data->n_pieces))
            return false;
        digests += length[i] == missing && streaming_has_digest(r, index);
        body_length -= length[i];
    }
    return body_length == 0 && digests == data->n_digests;
}

/* Adds where the bytes of a piece belong that have not arrived, from `offset` of them on. Returns false if some of them
 * belong nowhere. */
static bool add_places(const struct streaming *s, const struct streaming_round *r, uint32_t index,
                       uint32_t offset, uint32_t length, struct places *places)
{
    const struct passage *p = &s->passages->passage[index];
    struct sink *sink = s->base.set.sink;
    uint64_t at = r->flow[index].arrived + offset;

    if (p->out != PASSAGE_HERE)
        return false;
    for (uint32_t room = 0; offset < length; offset += room, at += room) {
        uint8_t *to =
            sink->ops->memory(sink, p->source, streaming_piece_begin(s, r, p) + at, &room);
        if (to == NULL)
            return false;
        if (room > length - offset)
            room = length - offset;
        if (!places_add(places, to, room))
            return false;
    }
    return true;
}

/* engine_ops.places. In an allgather, other ports may need the bytes. */
static void streaming_places(struct engine *engine, unsigned port,
                             const struct peer_message *message, uint32_t body_length,
                             uint32_t offset, struct places *places)
{
    const struct streaming *s = streaming_of(engine);
    const struct peer_streamed_data *data = &message->streamed_data;
    uint32_t length[PLACED_PIECES_MOST];
    uint64_t number;
    struct error e;

    if (s->base.set.sink->ops->memory == NULL || s->base.set.gather ||
        message->kind != PEER_STREAMED_DATA || s->base.failure.code != ERROR_NONE ||
        round_window_number(&s->window, data->round, &number, &e) != 0)
        return;
    const struct streaming_round *r = round_window_find(&s->window, number);
    if (r == NULL || !is_acceptable(s, r, port, data, body_length, length))
        return;
    for (size_t i = 0; i < data->n_pieces; i++) {
        const uint32_t skip = offset < length[i] ? offset : length[i];
        if (skip < length[i] &&
            !add_places(s, r, s->passages->arrival[port][data->pieces[i]], skip, length[i], places))
            return;
        offset -= skip;
    }
}

#define PIECES_A_FRAME 448u /* bounds the head; the receiver unpacks it without allocating */

/* Removes a piece from its queue, in which it is the first one of its urgency. */
static void dequeue_piece(struct streaming *s, struct streaming_round *r, uint32_t index)
{
    const struct passage *p = &s->passages->passage[index];

    queues_take(&r->queues, p->out, p->ahead);
}

/* Loads up to `most` bytes of a piece into the frame. Returns how many; 0 if there are none yet. */
static uint32_t move_piece_bytes(struct streaming *s, struct streaming_round *r, uint32_t index,
                                 uint32_t most, struct outgoing *frame)
{
    const struct passage *p = &s->passages->passage[index];
    struct streaming_flow *flow = &r->flow[index];

    if (p->in != PASSAGE_HERE)
        return frame_buffer_load(&s->buffer, &flow->hold, flow->sent, NULL, most, frame);
    if (s->base.set.gather)
        return streaming_move_shared(s, r, index, most, frame);
    if (!streaming_predecessor_read(s, r, index))
        return 0;
    const struct block_piece piece = streaming_piece(s, r, index);
    return frame_buffer_load_own(&s->buffer, &piece, flow->sent, streaming_mark(r, index), most,
                                 frame);
}

/* Puts a piece aside because the source has no bytes for it. It waits for streaming_wake(); in an allgather, also for
 * another port to read bytes of it. */
static void stall_piece(struct streaming *s, struct streaming_round *r, uint32_t index)
{
    if (s->base.set.gather) {
        r->starved = true;
        return;
    }
    (void)queues_add(&r->queues, streaming_stalled_port(s), 0, index);
}

struct streaming_filling {
    uint32_t pieces, sizes, digests;
    uint32_t piece[PIECES_A_FRAME], size[PIECES_A_FRAME];
    uint64_t digest[PIECES_A_FRAME];
};

/* Adds the available bytes of a piece, as many as fit into a frame of `fill` bytes. Returns whether the frame may take
 * another piece: only the last piece of a frame may be incomplete. */
static bool add_leaving_piece(struct streaming *s, struct streaming_round *r, uint32_t index,
                              uint32_t fill, struct outgoing *frame,
                              struct streaming_filling *filling)
{
    const struct passage *p = &s->passages->passage[index];
    struct streaming_flow *flow = &r->flow[index];
    bool own = p->in == PASSAGE_HERE;
    uint32_t there = (own ? flow->length : flow->arrived) - flow->sent;
    uint32_t most = frame_buffer_fits(frame, fill, there);
    uint32_t moved = most > 0 ? move_piece_bytes(s, r, index, most, frame) : 0;

    flow->sent += moved;
    /* the source has no bytes yet, or the engine has failed */
    if (moved == 0 && flow->length > 0) {
        dequeue_piece(s, r, index);
        stall_piece(s, r, index);
        return true;
    }
    filling->piece[filling->pieces++] = p->place;
    if (!s->base.set.uniform && !flow->named)
        filling->size[filling->sizes++] = flow->length;
    s->base.counts.port[p->out].tx_blocks += !flow->named;
    flow->named = true;
    dequeue_piece(s, r, index);
    if (flow->sent == flow->length) {
        if (streaming_has_digest(r, index))
            filling->digest[filling->digests++] = r->mark[index].digest;
        streaming_count_finished(r, p);
        return true;
    }
    if (own || flow->sent < flow->arrived)
        streaming_enqueue(s, r, index); /* it queues behind pieces of the same urgency */
    return false;
}

static void fill_streaming_frame(struct streaming *s, struct streaming_round *r, unsigned port,
                                 struct outgoing *frame, struct streaming_filling *filling)
{
    uint32_t index = queues_peek(&r->queues, port), fill = s->fill[port];
    bool more = true;

    /* what is sent after a piece that ends at the neighbour has no further to go */
    if (index != QUEUES_NONE && s->passages->passage[index].ahead == 1)
        fill = s->fill_last[port];
    filling->pieces = filling->sizes = filling->digests = 0;
    while (more && frame->body_length < fill && filling->pieces < PIECES_A_FRAME &&
           frame->body.count < OUTGOING_MAX_EXTENTS && s->base.failure.code == ERROR_NONE) {
        index = queues_peek(&r->queues, port);
        more = index != QUEUES_NONE && add_leaving_piece(s, r, index, fill, frame, filling);
    }
}

/* Returns the next frame of this round, or NULL if nothing can leave now. */
static struct outgoing *next_frame_of_streaming_round(struct streaming *s,
                                                      struct streaming_round *r, unsigned port)
{
    struct outgoing *frame =
        queues_peek(&r->queues, port) != QUEUES_NONE ? frame_buffer_new_frame(&s->buffer) : NULL;
    struct streaming_filling filling;

    if (frame == NULL)
        return NULL;
    fill_streaming_frame(s, r, port, frame, &filling);
    const struct peer_message message = {
        .kind = PEER_STREAMED_DATA,
        .streamed_data = {.exchange = s->base.set.handle,
                          .round = (uint32_t)(r->base.number & ENGINE_ROUND_MASK),
                          .has_call = s->base.set.call != NULL,
                          .call = engine_call(&s->base, port),
                          .n_pieces = filling.pieces,
                          .n_sizes = filling.sizes,
                          .n_digests = filling.digests,
                          .pieces = filling.piece,
                          .sizes = filling.size,
                          .digests = filling.digest}};
    return frame_buffer_ship(&s->buffer, port, frame, &message, filling.pieces > 0);
}

/* engine_ops.next */
static struct outgoing *streaming_next(struct engine *engine, unsigned port)
{
    struct streaming *s = streaming_of(engine);
    struct streaming_round *r = round_window_next(&s->window, s->base.rounds_finished);

    if (engine_has_lost(&s->base, port))
        return NULL;
    for (; r != NULL && s->base.failure.code == ERROR_NONE;
         r = round_window_next(&s->window, r->base.number + 1)) {
        struct outgoing *frame = next_frame_of_streaming_round(s, r, port);
        if (frame == NULL)
            continue;
        s->base.counts.port[port].combined_messages++;
        streaming_finish_rounds(s);
        return frame;
    }
    return NULL;
}

/* engine_ops.wake */
static void streaming_wake(struct engine *engine)
{
    struct streaming *s = streaming_of(engine);
    const unsigned stalled = streaming_stalled_port(s);
    struct streaming_round *r = round_window_next(&s->window, engine->rounds_finished);

    for (; r != NULL; r = round_window_next(&s->window, r->base.number + 1)) {
        uint32_t index = queues_peek(&r->queues, stalled);
        for (; index != QUEUES_NONE; index = queues_peek(&r->queues, stalled)) {
            queues_take(&r->queues, stalled, 0);
            streaming_enqueue_and_wake(s, r, index);
        }
        if (r->starved)
            streaming_requeue_starved(s, r);
    }
    streaming_finish_rounds(s);
}

#define FILL_LEAST (16u * 1024u)
#define FILL_LEAST_OF_ONE (4u * 1024u) /* a broadcast, where relays have nothing else to send */
#define FILL_MOST (60u * 1024u)
#define FILLS_A_CHANNEL 64u /* this many frames per channel and round keep relays busy */

/* Long frames make a relay cheaper, since most of a long body stays in the kernel (net/pipes.h). On a slow link, what is
 * urgent would wait for them. */
#define FILL_LONG (256u * 1024u)
#define LONGS_A_CHANNEL 32u
/* No relay waits for frames that end at the neighbour; what leaves behind them waits for a part of the round at most. */
#define LASTS_A_CHANNEL 2u
#define FAST_KBIT 2000000u

_Static_assert(FRAME_BUFFER_FRAME_MOST(FILL_MOST) <= FRAME_SHORT_BODY,
               "all versions take these frames");
_Static_assert(FRAME_BUFFER_FRAME_MOST(FILL_LONG) <= FRAME_MAX_BODY,
               "the longest frame can be relayed");

static void streaming_admit(struct engine *engine, uint64_t number)
{
    struct streaming *s = streaming_of(engine);
    struct streaming_round *r = streaming_open_round(s, number);

    if (r == NULL)
        return;
    r->base.admitted = true;
    for (uint32_t i = 0; i < s->passages->count; i++) {
        const struct passage *p = &s->passages->passage[i];
        if (p->in == PASSAGE_HERE && !(s->base.set.uniform && r->flow[i].length == 0))
            streaming_enqueue(s, r, i);
    }
    for (unsigned port = 0; port < s->ports; port++)
        if (queues_peek(&r->queues, port) != QUEUES_NONE)
            engine_wake_port(&s->base, port);
    streaming_finish_rounds(s);
}

static int streaming_clear(struct engine *engine, unsigned port, const struct peer_clear *clear,
                           struct error *e)
{
    (void)engine, (void)port, (void)clear;
    return error_set(e, ERROR_PROTOCOL, "a clear, but the exchange does not run in steps");
}

static void streaming_free(struct engine *engine)
{
    struct streaming *s = streaming_of(engine);

    for (uint32_t i = 0; i < engine->set.window; i++)
        streaming_free_round(round_window_slot(&s->window, i));
    frame_buffer_close(&s->buffer);
    free(s->verified_end);
    round_window_free(&s->window);
    free(s);
}

/* Whether pieces that leave here are relayed by other nodes. */
static bool are_relayed(const struct streaming *s)
{
    for (uint32_t i = 0; i < s->passages->count; i++)
        if (s->passages->passage[i].out != PASSAGE_HERE && s->passages->passage[i].ahead > 1)
            return true;
    return false;
}

/* Whether frames that leave by a port may be long. Where a group lacks nodes, others relay even what ends at the
 * neighbour (group/relay.h). */
static bool takes_long_frames(const struct streaming *s, unsigned port)
{
    const struct engine_part *part = s->base.set.part;
    const struct router *r = s->base.set.router;
    struct port_rates rates;

    if (s->base.set.gather || router_least_minor(r) < LONG_BODY_MINOR ||
        (part != NULL && part->channel > 0))
        return false;
    router_port_rates(r, engine_port(&s->base, port), &rates);
    const uint32_t kbit = rates.planned > 0 ? rates.planned : rates.observed;
    return kbit == 0 || kbit >= FAST_KBIT;
}

/* Sets up to how many bytes frames are filled: few compared with what a channel carries in a round, so that
 * relays can start early; but at most as many as a frame may have. */
static void choose_frame_fill(struct streaming *s)
{
    const struct engine_setup *set = &s->base.set;
    const uint32_t least = s->passages->source != TORUS_NO_NODE ? FILL_LEAST_OF_ONE : FILL_LEAST;
    uint64_t most = 0;

    for (unsigned port = 0; port < s->ports; port++)
        if (s->passages->departures[port] > most)
            most = s->passages->departures[port];
    most *= set->round_bytes / set->segments + 1;
    const bool is_long = most / LONGS_A_CHANNEL >= FILL_LONG && are_relayed(s);
    const uint64_t share = most / LASTS_A_CHANNEL;
    const uint32_t last = share < FILL_LONG ? (uint32_t)share : FILL_LONG;
    most /= FILLS_A_CHANNEL;
    const uint32_t fill = most < least ? least : most > FILL_MOST ? FILL_MOST : (uint32_t)most;
    for (unsigned port = 0; port < s->ports; port++) {
        const bool takes_long = takes_long_frames(s, port);
        s->fill[port] = is_long && takes_long ? FILL_LONG : fill;
        s->fill_last[port] = takes_long && last > s->fill[port] ? last : s->fill[port];
    }
}

static const struct engine_ops streaming_ops = {
    .free = streaming_free,
    .admit = streaming_admit,
    .frame = streaming_frame,
    .clear = streaming_clear,
    .next = streaming_next,
    .passes = streaming_passes,
    .places = streaming_places,
    .wake = streaming_wake,
    .describe = streaming_describe,
    .arrived = streaming_arrived,
    .waits = streaming_waits,
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
        frame_buffer_init(&s->buffer, &s->base, cut_longest(&s->cut));
        choose_frame_fill(s);
        if (setup->digests)
            s->verified_end = calloc(engine_torus(setup)->nodes, sizeof *s->verified_end);
        if ((s->verified_end != NULL || !setup->digests) &&
            round_window_init(&s->window, &s->base, sizeof(struct streaming_round)) == 0)
            return &s->base;
        free(s->verified_end);
        free(s);
    }
    (void)error_set(e, ERROR_MEMORY, "out of memory for an exchange");
    return NULL;
}
